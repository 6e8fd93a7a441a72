# dictionary keys
def read(row):
    return row["os"], row["system"], row.get("eval"), row["exec"]
