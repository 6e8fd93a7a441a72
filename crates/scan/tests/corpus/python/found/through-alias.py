# subprocess by way of asyncio
import asyncio as aio
aio.subprocess.PIPE  # <-
