"""The one door to numba: kernels, static dispatch, and a cache keyed by the sources.

A **kernel** is plain Python that happens to compile; with ``NUMBA_DISABLE_JIT=1`` a
debugger steps through it. A **generic** is a function whose implementation is chosen by
the class of one argument, at compile time in compiled code and by a dictionary in
Python. An **entry** is a kernel that Python calls: it is compiled once for each
combination of argument types and kept on disk across processes.

numba keys its on-disk cache by the file of the entry alone, so an edit to a policy would
not recompile the engine that calls it. Entries therefore live in a directory named by a
hash of every source that can be compiled into them.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import inspect
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import numba
import numba.core.errors
import numpy as np
from numba.extending import overload, register_jitable

from ._bound import Bound

__all__ = [
    "ENABLED",
    "Bound",
    "CompileError",
    "Entry",
    "cache_root",
    "columns",
    "entry",
    "generic",
    "kernel",
    "register",
    "routine",
    "where",
]

F = TypeVar("F", bound=Callable[..., Any])

ENABLED: bool = not numba.config.DISABLE_JIT
"""False when ``NUMBA_DISABLE_JIT`` is set: everything below then runs as plain Python."""

_KERNEL_PATHS: tuple[str, ...] = ("_jit.py", "_bound.py", "table.py", "rules.py", "hooks.py", "policies")
_KERNEL_PATHS += ("schedule", "latency", "sim/apply.py", "sim/instance.py", "sim/record.py")
_LEAN: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
_implementations: dict[str, dict[type, Callable[..., Any]]] = {}
_defaults: dict[str, Callable[..., Any]] = {}
_resolved: set[type] = set()
_traits: dict[type, frozenset[str]] = {}
_sources: dict[type, tuple[str, ...]] = {}


def kernel(function: F) -> F:
    """Let compiled code call ``function``, inlined; from Python it stays the plain function."""
    return cast(F, register_jitable(forceinline=True, **_LEAN)(function))


def routine(function: F) -> F:
    """As `kernel`, for a large or rare function that is called rather than inlined.

    Inlining large bodies into one another optimises each of them again at every level,
    which is where compile time goes.
    """
    return cast(F, register_jitable(**_LEAN)(function))


def generic(on: str) -> Callable[[F], F]:
    """Make a function generic over the class of its argument ``on``.

    The decorated body is the default. Implementations come through `register`.
    """

    def wrap(default: F) -> F:
        name = default.__name__
        if name in _implementations:
            raise ValueError(f"generic {name!r} is defined twice")
        table = _implementations[name] = {}
        _defaults[name] = default
        index = list(inspect.signature(default).parameters).index(on)

        def pick(cls: type) -> Callable[..., Any]:
            _resolved.add(cls)
            return table.get(cls, default)

        def call(*args: Any) -> Any:
            return pick(type(args[index]))(*args)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = default.__doc__
        call.__module__ = default.__module__
        call.__wrapped__ = default  # type: ignore[attr-defined]

        @overload(call, strict=False, jit_options={"forceinline": True, **_LEAN})  # type: ignore[untyped-decorator]
        def typed(*types: Any) -> Any:
            return pick(types[index].instance_class)

        return cast(F, call)

    return wrap


def where(trait: str, otherwise: Callable[..., Any], of: str = "params") -> Callable[[F], F]:
    """Compile a kernel only for policies that have ``trait``; the others get ``otherwise``.

    A trait is the name of a hook that the policy implements, or one that it registers. The
    kernel's first argument is the engine, whose ``params`` tell the policy; the class of
    another of its fields decides if ``of`` names that. So a policy pays, in compile time
    and at run time, for what it uses.
    """

    def wrap(function: F) -> F:
        def pick(cls: type) -> Callable[..., Any]:
            return function if trait in _traits.get(cls, ()) else otherwise

        def call(*args: Any) -> Any:
            return pick(type(getattr(args[0], of)))(*args)

        call.__name__ = call.__qualname__ = function.__name__
        call.__doc__ = function.__doc__
        call.__module__ = function.__module__

        @overload(call, strict=False, jit_options={"forceinline": True, **_LEAN})  # type: ignore[untyped-decorator]
        def typed(*types: Any) -> Any:
            return pick(types[0].types[types[0].fields.index(of)].instance_class)

        return cast(F, call)

    return wrap


def register(
    cls: type,
    functions: Mapping[str, Callable[..., Any]],
    sources: Iterable[str] = (),
    traits: Iterable[str] = (),
    owner: str = "",
) -> None:
    """Give class ``cls`` all its implementations, and its traits for `where`, at once.

    ``cls`` is a NamedTuple class (a policy's parameters, a latency model's figures).
    ``sources`` are files outside the package whose text goes into the cache key.

    Raises ValueError for an unknown generic, a signature that differs from the
    generic's, or a class that is registered or was already compiled for: numba would
    silently keep the old code.
    """
    if cls in _sources or cls in _resolved:
        raise ValueError(f"{cls.__qualname__} is registered already; all hooks of a class come in one call")
    for name, function in functions.items():
        if name not in _implementations:
            raise ValueError(f"{cls.__qualname__}: no hook is called {name!r}")
        want, have = _arguments(_defaults[name]), _arguments(function)
        if want != have:
            raise ValueError(
                f"{owner or cls.__qualname__}.{name} takes ({', '.join(have)}), must take ({', '.join(want)})"
            )
    # numba names compiled symbols after a class's bare name. Two classes called alike would
    # share symbols, and one policy would silently run as the other.
    cls.__name__ = f"{cls.__module__}.{cls.__qualname__}".replace(".", "_")
    _sources[cls] = tuple(sorted(sources))
    _traits[cls] = frozenset(functions) | frozenset(traits)
    for name, function in functions.items():
        _implementations[name][cls] = function


def sources_of(cls: type) -> tuple[str, ...]:
    """Files outside the package that hold ``cls``'s implementations."""
    return _sources.get(cls, ())


def _arguments(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def cache_root() -> Path:
    """Directory for everything tailrace keeps between processes.

    ``TAILRACE_CACHE_DIR`` if set, else the platform's user cache directory.
    """
    given = os.environ.get("TAILRACE_CACHE_DIR")
    if given:
        return Path(given)
    import platformdirs

    return Path(platformdirs.user_cache_dir("tailrace"))


def source_files() -> list[str]:
    """Our own files that may be compiled into an entry."""
    here = Path(__file__).parent
    return [
        str(f) for part in _KERNEL_PATHS for f in sorted([here / part, *(here / part).rglob("*.py")]) if f.is_file()
    ]


def source_digest(extra: Iterable[str] = ()) -> str:
    """Hash of all text that may be compiled into an entry, and of the compiler's version."""
    digest = _own_sources().copy()
    for file in map(Path, extra):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _own_sources() -> hashlib._Hash:
    """Read as soon as the first entry is defined: a file edited later must not name old code."""
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__} {platform.python_version()}".encode())
    for file in map(Path, source_files()):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest


class CompileError(Exception):
    """A kernel that numba cannot compile: one line with file, line and reason."""


def _reason(text: str, files: Iterable[str]) -> str:
    """What of numba's pages of text a policy's author needs."""
    names = {Path(file).name for file in files}
    places = [
        (match.start(), f"{Path(match[1]).name} line {match[2]}")
        for match in re.finditer(r'File "([^"]+)", line (\d+)', text)
        if Path(match[1]).name in names
    ]
    reasons = [m for m in re.finditer(_REASONS, text) if "Failed in nopython" not in m[0]]
    where = places[0][1] if places else ", ".join(sorted(names)) if len(names) < 4 else "a hook"
    why = " ".join(reasons[-1][0].split()) if reasons else "it is not the Python that numba compiles"
    for sign, meaning in _MEANINGS.items():
        if sign in why:
            why = meaning
    return f"{where}: {why[:200]}"


_MEANINGS = {
    "NRT required": "it makes a list, an array or another object; hooks cannot allocate",
    "Only accept returning of array": "it returns a new array; hooks cannot allocate",
    "<function refresh": "key must return an int and a float",
}


_REASONS = (
    r"(NameError: [^\n]+|Untyped global name[^\n]+|Unknown attribute '\w+'|Use of unsupported[^\n]+"
    r"|Cannot unify[^\n]+|NRT required but not enabled|Only accept returning of array[^\n]+|Invalid use of[^\n]+"
    r"|No conversion from [^\n]+|No implementation of function Function\([^\n]{0,80}|Can't unbox[^\n]+"
    r"|has no attribute[^\n]+)"
)


class Entry:
    """A kernel that Python calls. Compiled on the first call for each set of types."""

    def __init__(self, function: Callable[..., Any]) -> None:
        _own_sources()
        self.py_func = function
        self.__doc__ = function.__doc__
        self._compiled: dict[tuple[str, ...], Any] = {}
        self._known: set[Any] = set()

    def __call__(self, *args: Any) -> Any:
        return self.on()(*args)

    def on(self, *classes: type) -> Callable[..., Any]:
        """The callable for calls that involve ``classes`` (their foreign sources key the cache)."""
        if not ENABLED:
            return self.py_func
        extra = self._extra(classes)
        dispatcher = self._of(extra)
        if classes and (extra, classes) in self._known:
            return cast(Callable[..., Any], dispatcher)

        def first(*args: Any) -> Any:
            self._compile(dispatcher, classes, tuple(map(numba.typeof, args)))
            self._known.add((extra, classes))
            return dispatcher(*args)

        return first

    def compile(self, classes: tuple[type, ...], *args: Any) -> None:
        """Compile for ``args``, and call nothing. Raises CompileError."""
        extra = self._extra(classes)
        if ENABLED and (extra, classes) not in self._known:
            self._compile(self._of(extra), classes, tuple(map(numba.typeof, args)))
            self._known.add((extra, classes))

    def bound(self, classes: tuple[type, ...], engine: Bound, args: tuple[Any, ...]) -> Callable[..., Any]:
        """The code compiled for ``engine``'s address and the types of ``args``, without numba's look at
        every argument and into every array, which for an engine takes longer than most kernels do.

        The caller promises arguments of these very types, dtype and layout included: with
        others it reads garbage.
        """
        dispatcher, signature = self._of(self._extra(classes)), (engine.type, *map(numba.typeof, args))
        self._compile(dispatcher, classes, signature)
        return cast(Callable[..., Any], dispatcher.get_overload(signature))

    @staticmethod
    def _extra(classes: tuple[type, ...]) -> tuple[str, ...]:
        return tuple(source for cls in classes for source in _sources.get(cls, ()))

    def _of(self, extra: tuple[str, ...]) -> Any:
        if extra not in self._compiled:
            self._compiled[extra] = self._dispatcher(extra)
        return self._compiled[extra]

    def _compile(self, dispatcher: Any, classes: tuple[type, ...], signature: tuple[Any, ...]) -> None:
        extra = self._extra(classes)
        try:
            with _one_at_a_time(extra, self.py_func.__name__, classes), _compiling():
                dispatcher.compile(signature)
        except numba.core.errors.NumbaError as error:
            raise CompileError(_reason(str(error), extra or source_files())) from None

    def _dispatcher(self, extra: tuple[str, ...]) -> Any:
        # Kernels neither allocate nor hold references, so numba's reference counts (an
        # atomic add for every array at every call) are left out: ten times the speed.
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
        directory = cache_root() / "numba" / source_digest(extra)
        before = numba.config.CACHE_DIR
        try:
            directory.mkdir(parents=True, exist_ok=True)
            numba.config.CACHE_DIR = str(directory)
            return numba.njit(cache=True, **options)(self.py_func)
        except (OSError, RuntimeError):  # nowhere to write: compile in memory
            return numba.njit(**options)(self.py_func)
        finally:
            numba.config.CACHE_DIR = before


@contextlib.contextmanager
def _one_at_a_time(extra: tuple[str, ...], name: str, classes: tuple[type, ...]) -> Iterator[None]:
    """Wait while another process compiles the same, and find its work in the cache then."""
    key = hashlib.sha256(repr([name, *(cls.__name__ for cls in classes)]).encode()).hexdigest()[:16]
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):  # no locks here, or nowhere to write
            import fcntl

            lock = cache_root() / "numba" / source_digest(extra) / f"{key}.lock"
            fcntl.flock(stack.enter_context(lock.open("w")), fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Compile a quarter faster: no garbage collection, no loop vectorizer.

    The loops here are branchy and gain nothing from numba's highest optimisation level,
    which every inlined function would go through at every level of inlining.
    """
    level, vectorize, collecting = numba.config.OPT, numba.config.LOOP_VECTORIZE, gc.isenabled()
    gc.disable()
    numba.config.OPT, numba.config.LOOP_VECTORIZE = type(level)(1), 0
    try:
        yield
    finally:
        numba.config.OPT, numba.config.LOOP_VECTORIZE = level, vectorize
        if collecting:
            gc.enable()


def entry(function: Callable[..., Any]) -> Entry:
    """Decorate a kernel that Python calls."""
    return Entry(function)


def columns(array: np.ndarray[Any, Any]) -> Any:
    """View a structured array so that ``view.column[row]`` works here and in kernels.

    One array of records is one argument to a compiled call and one cache line a row;
    a tuple of columns doubles the compile time and costs a microsecond a column a call.
    """
    if ENABLED:
        return array.view(np.recarray)
    assert array.dtype.names is not None
    return SimpleNamespace(**{name: array[name] for name in array.dtype.names})
