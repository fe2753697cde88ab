// Button that asks for confirmation in place.
import { button, element } from "./dom.js";

// Errors of `action` are shown next to the button.
export const confirmButton = (label, question, confirmLabel, action) => {
  const root = element("span", { class: "confirm" });
  const status = element("span", { class: "problem", role: "status" });

  const showButton = (focus) => {
    root.replaceChildren(initial, status);
    if (focus) initial.focus();
  };

  const confirm = async () => {
    root.replaceChildren(element("span", { class: "dim" }, "…"), status);
    try {
      await action();
      if (root.isConnected) showButton(false);
    } catch (problem) {
      status.textContent = ` ${problem.message}`;
      showButton(true);
    }
  };

  const initial = button(
    label,
    () => {
      status.textContent = "";
      const yes = button(confirmLabel, confirm, { class: "small danger" });
      root.replaceChildren(
        element("span", {}, question, " "),
        yes,
        " ",
        button("Cancel", () => showButton(true), { class: "small" }),
      );
      yes.focus();
    },
    { class: "small" },
  );

  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !initial.isConnected) showButton(true);
  });
  showButton(false);
  return root;
};
