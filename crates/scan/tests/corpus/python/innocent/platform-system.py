# which system it is
import platform
NAME = platform.system()
NAME_AGAIN = getattr(platform, "system")()
