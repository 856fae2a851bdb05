/** What we use of the package, which brings no types. */
declare module "bloomfilter" {
  export class BloomFilter {
    constructor(bits: number, hashes: number);
    add(value: string): void;
    /** False: it was never added. True: it was, or happens to look so. */
    test(value: string): boolean;
  }
}
