# strings that mention what is banned
TEXT = "never use os.system or eval('x')"
