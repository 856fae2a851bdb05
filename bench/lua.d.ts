/** A Lua script as text: bundled by compiled.ts. */
declare module "*.lua" {
  const text: string;
  export default text;
}
