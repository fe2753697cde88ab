// Light and dark theme, and the contrast of all text.
import assert from "node:assert/strict";
import { after } from "node:test";
import { startFleet } from "./fleet.mjs";
import { open, pageTest } from "./page.mjs";

const fleet = await startFleet();
after(() => fleet.stop());

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

pageTest(
  "the theme follows the system unless the user selects one",
  { colorScheme: "dark" },
  async (page) => {
    await open(page, fleet.first);
    const dark = await background(page);
    await page.getByRole("button", { name: "Light" }).click();
    const light = await background(page);
    assert.notEqual(light, dark);
    await page.reload();
    assert.equal(await background(page), light);
    await page.getByRole("button", { name: "Dark" }).click();
    assert.equal(await background(page), dark);
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await background(page), light, "the page follows the system again");
  },
);

// Texts whose contrast with their background is below 4.5, by the formula of WCAG.
const lowContrastTexts = () => {
  const channels = (colour) => {
    const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
      willReadFrequently: true,
    });
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) =>
    channels(colour)
      .slice(0, 3)
      .map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
      .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const backgroundOf = (node) => {
    for (let parent = node; parent; parent = parent.parentElement) {
      const colour = getComputedStyle(parent).backgroundColor;
      if (channels(colour)[3] === 255) return colour;
    }
    return "white";
  };
  return [...document.querySelectorAll("body *")]
    .filter(
      (node) =>
        node.checkVisibility() && [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()),
    )
    .map((node) => {
      const [text, back] = [luminance(getComputedStyle(node).color), luminance(backgroundOf(node))];
      return {
        text: node.textContent.slice(0, 40),
        contrast: (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05),
      };
    })
    .filter(({ contrast }) => contrast < 4.5);
};

for (const colorScheme of ["light", "dark"]) {
  pageTest(`all text has enough contrast in the ${colorScheme} theme`, { colorScheme }, async (page) => {
    await fleet.check(fleet.second, { client: colorScheme, path: "/once" });
    await fleet.check(fleet.second, { client: colorScheme, path: "/once" });
    await open(page, `${fleet.first}/#why=client%3D${colorScheme}%20path%3D%2Fonce`);
    await page.locator("#why-headline").filter({ hasText: "Refused now" }).waitFor();
    await page.locator("#refused-table tbody tr").first().waitFor();
    assert.deepEqual(await page.evaluate(lowContrastTexts), []);
  });
}
