// in a class
class Holder {
  run = (text: string): unknown => eval(text); // <-
}
