// a method called eval
class Model {
  eval() { return this; }
  exec(text: string) { return text; }
}
new Model().eval().exec("x");
