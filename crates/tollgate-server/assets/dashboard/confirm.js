// A button that asks before it acts, in its own place.
import { button, element } from "./dom.js";

// `act` may be slow; what it throws is told beside the button.
export const confirmButton = (label, question, yes, act) => {
  const root = element("span", { class: "confirm" });
  const told = element("span", { class: "problem", role: "status" });

  const rest = (focus) => {
    root.replaceChildren(first, told);
    if (focus) first.focus();
  };

  const sure = async () => {
    root.replaceChildren(element("span", { class: "dim" }, "…"), told);
    try {
      await act();
      if (root.isConnected) rest(false);
    } catch (problem) {
      told.textContent = ` ${problem.message}`;
      rest(true);
    }
  };

  const first = button(
    label,
    () => {
      told.textContent = "";
      const sureButton = button(yes, sure, { class: "small danger" });
      root.replaceChildren(
        element("span", {}, question, " "),
        sureButton,
        " ",
        button("Cancel", () => rest(true), { class: "small" }),
      );
      sureButton.focus();
    },
    { class: "small" },
  );

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !first.isConnected) rest(true);
  });
  rest(false);
  return root;
};
