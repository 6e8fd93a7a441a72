// a name that an own function gives back
const name = () => "ev" + "al";
const own: any = {};
export const go = () => own[name()];
