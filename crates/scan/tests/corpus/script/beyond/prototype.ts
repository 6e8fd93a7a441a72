// a function that somebody else calls with more than was meant
const own: any = {};
own.__proto__.then = (resolve: any) => resolve;
export default own;
