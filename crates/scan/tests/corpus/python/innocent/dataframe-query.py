# the same by a query
def run(df):
    return df.query("a > 1").exec
