# a module called code in a library
import discord
CODE = discord.code
