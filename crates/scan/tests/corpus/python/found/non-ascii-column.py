# after letters that take several bytes
größe = "äöü"; eval(größe)  # <-
