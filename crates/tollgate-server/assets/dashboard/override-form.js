// Form that sets an override: first a preview by a dry run, then the change.
import { clientPath, request } from "./api.js";
import { byId, element, fill, setClass, setText } from "./dom.js";
import { moment } from "./format.js";
import { nodeNow } from "./node-time.js";
import { candidateElements, previewElements } from "./override-preview.js";
import { describeLimits, formatLimits, parseLimits } from "./rates.js";
import { author } from "./session.js";

const HOUR_MS = 3_600_000;
const UNCHANGED = "unchanged";
const ALL_RULES = "*";

const resultText = ({ limits, applies_to: rules, expires_at: expiry, problem }) => {
  const scope = rules.join(", ");
  const until = expiry ? `, until ${moment(expiry)}` : "";
  const effect = scope ? ` for ${scope}` : "; no rule is affected";
  return `Override set: ${describeLimits(limits)}${effect}${until}.${problem ? ` Warning: ${problem}` : ""}`;
};

// Rules that can be overridden: those that are keyed per client.
const overridableRules = (policy) =>
  (policy?.rules ?? [])
    .filter(({ per, mode }) => per.includes("client") && mode !== "unlimited")
    .map(({ rule, limits }) => ({ rule, limits: limits.join(", ") }));

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

const FIELDS = ["client", "tenant", "limits", "rule", "expires", "reason", "only", "fresh", "status", "preview"];

export const createOverrideForm = (onSet) => {
  const fields = Object.fromEntries(FIELDS.map((name) => [name, byId(`override-${name}`)]));
  const { client, tenant, limits, rule, expires, reason, only, fresh, status, preview } = fields;
  const form = byId("override-form");
  const expiry = createExpiry(expires);
  let edited = null; // the override that is being edited
  let generation = 0; // a changed form makes an older preview invalid

  const setStatus = (text, isError) => {
    setText(status, text);
    setClass(status, isError ? "wide problem" : "wide good");
  };

  const clearPreview = () => {
    generation += 1;
    preview.replaceChildren();
  };

  const clear = () => {
    clearPreview();
    setStatus("", false);
  };

  const edit = (override) => {
    edited = override.limits ? override : null;
    client.value = override.client;
    tenant.value = override.tenant ?? "";
    limits.value = formatLimits(override.limits ?? []);
    const hasRule = [...rule.options].some((option) => option.value === override.rule);
    rule.value = hasRule ? override.rule : "";
    reason.value = override.reason ?? "";
    [only.checked, fresh.checked] = [override.only ?? false, false];
    expiry.setCurrent(override.expires_at);
    expires.selectedIndex = 0;
    if (edited && !override.expires_at) expires.value = "";
    clear();
    form.scrollIntoView({ block: "center" });
    limits.focus();
  };

  const readForm = () => ({
    path: clientPath(client.value, "limits"),
    tenant: tenant.value,
    body: {
      limits: parseLimits(limits.value, edited?.limits),
      rule: rule.value === ALL_RULES || rule.value === "" ? null : rule.value,
      ...(rule.value === ALL_RULES ? { all_rules: true } : {}),
      ...(only.checked ? { only: true } : {}),
      ...(fresh.checked ? { fresh: true } : {}),
      reason: reason.value,
      author: author(),
      expires_at: expiry.read(),
    },
  });

  const send = (request_, isDryRun) =>
    request("PUT", request_.path, {
      query: { tenant: request_.tenant, dry_run: isDryRun ? "true" : null },
      body: request_.body,
    });

  const confirm = async (checked) => {
    const stored = await send(checked, false);
    clearPreview();
    setStatus(resultText(stored), Boolean(stored.problem));
    onSet();
  };

  const fail = (problem) => {
    clearPreview();
    setStatus(problem.message, true);
  };

  const showCandidates = (candidates) => {
    const onChoose = (chosen) => {
      rule.value = chosen;
      showPreview();
    };
    preview.replaceChildren(...candidateElements(candidates, { onChoose, onCancel: clearPreview }));
    preview.querySelector("button")?.focus();
  };

  const showPreview = async () => {
    clear();
    const current = generation;
    try {
      const checked = readForm();
      const result = await send(checked, true);
      if (current !== generation) return;
      const onConfirm = () => confirm(checked).catch(fail);
      const options = { isFresh: fresh.checked, onConfirm, onCancel: clearPreview };
      preview.replaceChildren(...previewElements(result, options));
      preview.querySelector(".actions button")?.focus();
    } catch (problem) {
      if (current !== generation) return;
      if (problem.body?.candidates) showCandidates(problem.body.candidates);
      else fail(problem);
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    showPreview();
  });
  form.addEventListener("input", clear);
  form.addEventListener("reset", () => {
    edited = null;
    expiry.setCurrent(null);
    clear();
  });

  return {
    edit,
    clearStatus: () => setStatus("", false),
    // Keeps the selected rule unless the policy no longer has it.
    update: ({ policy }) => {
      const rules = overridableRules(policy);
      const selected = rule.value;
      fill(rule, rules, () => [
        element("option", { value: "" }, "the only rule that counts this client"),
        ...rules.map(({ rule: name, limits: text }) => element("option", { value: name }, `${name} (${text})`)),
        element("option", { value: ALL_RULES }, "all rules, except blocks"),
      ]);
      const isKept = selected === ALL_RULES || rules.some(({ rule: name }) => name === selected);
      if (rule.value !== selected) rule.value = isKept ? selected : "";
    },
  };
};
