// Form that sets an override.
import { clientPath, request } from "./api.js";
import { byId, element, fill, setClass, setText } from "./dom.js";
import { moment } from "./format.js";
import { nodeNow } from "./node-time.js";
import { describeLimits, formatLimits, parseLimits } from "./rates.js";
import { author } from "./session.js";

const HOUR_MS = 3_600_000;
const UNCHANGED = "unchanged";

const resultText = ({ limits, applies_to: rules, expires_at: expiry, problem }) => {
  const scope = rules.length > 0 ? ` for ${rules.join(", ")}` : "; no rule is affected";
  const until = expiry ? `, until ${moment(expiry)}` : "";
  return `Override set: ${describeLimits(limits)}${scope}${until}.${problem ? ` Warning: ${problem}` : ""}`;
};

// Rules that can be overridden: those that are keyed per client.
const overridableRules = (policy) =>
  (policy?.rules ?? [])
    .filter(({ per, mode }) => per.includes("client") && mode !== "unlimited")
    .map(({ rule }) => rule);

// Expiry: one of the options, or that of the edited override.
const createExpiry = (select) => {
  let current = null;
  return {
    setCurrent: (expiry) => {
      current = expiry ?? null;
      select.querySelector(`[value=${UNCHANGED}]`)?.remove();
      if (expiry) select.prepend(element("option", { value: UNCHANGED }, `unchanged, ${moment(expiry)}`));
    },
    read: () => {
      if (select.value === UNCHANGED) return current;
      return select.value === "" ? null : new Date(nodeNow() + Number(select.value) * HOUR_MS).toISOString();
    },
  };
};

const FIELDS = ["client", "tenant", "limits", "rule", "expires", "reason", "status"];

export const createOverrideForm = (onSet) => {
  const [client, tenant, limits, rule, expires, reason, status] = FIELDS.map((name) => byId(`override-${name}`));
  const form = byId("override-form");
  const expiry = createExpiry(expires);
  let edited = null; // the override that is being edited

  const setStatus = (text, isError) => {
    setText(status, text);
    setClass(status, isError ? "wide problem" : "wide good");
  };

  const edit = (override) => {
    edited = override.limits ? override : null;
    client.value = override.client;
    tenant.value = override.tenant ?? "";
    limits.value = formatLimits(override.limits ?? []);
    rule.value = override.rule ?? "";
    reason.value = override.reason ?? "";
    expiry.setCurrent(override.expires_at);
    expires.selectedIndex = 0;
    if (edited && !override.expires_at) expires.value = "";
    setStatus("", false);
    form.scrollIntoView({ block: "center" });
    limits.focus();
  };

  const submit = async () => {
    const body = {
      limits: parseLimits(limits.value, edited?.limits),
      rule: rule.value || null,
      reason: reason.value,
      author: author(),
      expires_at: expiry.read(),
    };
    const stored = await request("PUT", clientPath(client.value, "limits"), { query: { tenant: tenant.value }, body });
    setStatus(resultText(stored), stored.problem !== null);
    onSet();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit().catch((problem) => setStatus(problem.message, true));
  });
  form.addEventListener("reset", () => {
    edited = null;
    expiry.setCurrent(null);
    setStatus("", false);
  });

  return {
    edit,
    clearStatus: () => setStatus("", false),
    // Keeps the selected rule unless the policy no longer has it.
    update: ({ policy }) => {
      const rules = overridableRules(policy);
      const selected = rule.value;
      fill(rule, rules, () => [
        element("option", { value: "" }, "all rules keyed per client"),
        ...rules.map((name) => element("option", { value: name }, name)),
      ]);
      rule.value = rules.includes(selected) ? selected : "";
    },
  };
};
