# compile of something else
def build(template, jinja):
    return jinja.compile(template)
