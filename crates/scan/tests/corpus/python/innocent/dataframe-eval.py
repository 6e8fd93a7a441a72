# a column computed by pandas
import pandas as pd

def run(df):
    df.eval("c = a + b", inplace=True)
    return pd.eval("1 + 1")
