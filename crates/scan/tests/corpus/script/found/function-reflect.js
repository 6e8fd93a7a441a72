// by Reflect.construct
Reflect.construct(Function, ["return 1"]); // <-
