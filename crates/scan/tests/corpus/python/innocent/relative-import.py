# modules of one's own with famous names
from . import os, sys
from .subprocess import run
from .code import eval

run(os, sys, eval("x"))
