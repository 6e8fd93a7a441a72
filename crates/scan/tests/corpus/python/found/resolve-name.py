# a module by pkgutil
import pkgutil
run = pkgutil.resolve_name("os:system")  # <-
