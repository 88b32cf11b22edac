// The Enter key in a box to write in.

const touchKeyboard = matchMedia("(hover: none) and (pointer: coarse)");

/** Whether people here type on glass, where Enter breaks the line and a button sends. */
export function hasTouchKeyboard() {
  return touchKeyboard.matches;
}

/** Call `action()` for Enter in `box`; with Shift or Alt, and on a touch keyboard, it breaks the line. */
export function listenForEnter(box, action) {
  let isLineBreakWanted = false;
  box.addEventListener("keydown", (event) => (isLineBreakWanted = event.shiftKey || event.altKey));
  // Not keydown: this comes only where a line break would be typed, so never from the Enter that picks a candidate of
  // an input method, and once for the Enter that ends a Korean syllable.
  box.addEventListener("beforeinput", (event) => {
    const isEnter = event.inputType === "insertLineBreak" || event.inputType === "insertParagraph";
    if (!isEnter || event.isComposing || isLineBreakWanted || hasTouchKeyboard()) return;
    event.preventDefault();
    action();
  });
}
