# a process by asyncio
import asyncio

async def go():
    return await asyncio.create_subprocess_shell("ls")  # <-
