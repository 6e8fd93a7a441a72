// in a decorator
declare const register: any;
@register(eval("1")) // <-
class Holder {}
