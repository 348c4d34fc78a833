/** Words for codes. */
import { CAUSES } from "../causes";

/** `dispatch` is `idle, dispatch: an operator's own host time`. */
export function causeWords(code: string): string {
  return Object.hasOwn(CAUSES, code) ? `idle, ${code}: ${CAUSES[code]!}` : `idle, ${code}`;
}

export function causeMeaning(code: string): string {
  return Object.hasOwn(CAUSES, code) ? CAUSES[code]! : "";
}

/** Keys of the timeline, as the list shows them. */
export const KEYS: [keys: string, what: string][] = [
  ["\u2190 \u2192", "pan"],
  ["+ \u2212", "zoom, at the chosen event when it is in view"],
  ["Home", "the whole window"],
  ["\u2191 \u2193", "lane above, lane below"],
  ["n p", "next, previous event of the lane"],
  ["Enter", "zoom to what is chosen"],
  ["l", "from a kernel to its launch, from a launch to its kernel"],
  ["m", "measure what is in view: events and busy time of each lane"],
  ["g s", "fold the group, make the lane small"],
  ["/", "search; there, Enter and Shift+Enter go to the next and previous one found"],
  ["Esc", "choose nothing"],
  ["?", "this list"],
];
