/** Texts that some store or parser folds, pads, cuts, refuses or mangles. */
export const TRICKY: readonly [what: string, text: string][] = [
  ["nothing", ""],
  ["a space", " "],
  ["a trailing space", "Xy1 "],
  ["an accent", "Xý1"],
  ["an emoji", "😀"],
  ["NUL", "Xy1\0"],
  ["half a surrogate pair", "Xy1\ud800"],
  ["10,000 characters", "x".repeat(10_000)],
  ["a colon", "a:b"],
  ["a brace", "a}b"],
  ["a number", "0"],
  ["a line break", "Xy1\n"],
];

/** Texts that no operator's reason can be. */
export const NO_REASONS: readonly string[] = ["", " \n", "a\0", "\udc00", "x".repeat(501)];
