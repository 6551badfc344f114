"""Small files as they really come, made by code, each with what a release must hold or how it is refused."""
