// static blocks and private fields
class Own {
  static #exec = 1;
  #env = 2;
  static { Own.#exec = 3; }
  get env() { return this.#env; }
}
export default new Own().env;
