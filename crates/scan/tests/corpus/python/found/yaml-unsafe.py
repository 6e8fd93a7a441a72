# code that comes with YAML
import yaml
yaml.unsafe_load("x")  # <-
