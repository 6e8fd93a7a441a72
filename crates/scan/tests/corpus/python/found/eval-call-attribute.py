# through __call__
eval.__call__("1")  # <-
