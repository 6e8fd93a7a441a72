// a method whose name comes with the call
export const go = (thing: any, name: string) => thing[name]();
