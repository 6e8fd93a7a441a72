# YAML without code
import yaml
DATA = yaml.safe_load("a: 1")
