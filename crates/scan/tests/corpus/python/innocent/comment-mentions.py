# comments that mention what is banned
# import os; os.system("rm"); eval("x")
VALUE = 1
