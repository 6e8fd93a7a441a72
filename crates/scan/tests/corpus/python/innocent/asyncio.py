# waiting without processes
import asyncio

async def go():
    await asyncio.sleep(0)
    return await asyncio.gather()
