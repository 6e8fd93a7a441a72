// the name of a class
export const kind = (x: object) => x.constructor.name;
export class Own {
  same(other: object) { return other.constructor === this.constructor; }
  again() { return new (this.constructor as any)("text"); }
  constructor() {}
}
