"""The engine without its clock: ranking, blocks, and the plan of one step."""
