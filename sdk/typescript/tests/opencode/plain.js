// No import at all: an object with the three fields is a tool.
export default {
  description: "Turn a text around",
  args: { text: { type: "string", description: "The text" }, upper: { type: "boolean", default: false } },
  execute: ({ text, upper }) => {
    const turned = [...text].reverse().join("");
    return upper ? turned.toUpperCase() : turned;
  },
};
