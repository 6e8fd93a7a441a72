// strings put together
export const words = ["ev" + "al", ["child", "process"].join("_"), `con${"structor"}`];
