# an ordinary tool
from toolcrib import Context, tool

@tool(read_only=True)
async def add(a: int, b: int, ctx: Context) -> int:
    """Adds two numbers."""
    await ctx.progress(1.0)
    return a + b
