# in with, async for and await
async def go(source):
    async with source as inner:
        async for text in inner:
            await eval(text)  # <-
