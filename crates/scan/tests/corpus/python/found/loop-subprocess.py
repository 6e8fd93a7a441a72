# a process by an event loop
import asyncio

async def go():
    loop = asyncio.get_running_loop()
    await loop.subprocess_shell(None, "ls")  # <-
