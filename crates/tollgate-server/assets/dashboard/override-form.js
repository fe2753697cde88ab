// Giving a client limits of its own.
import { ask, clientPath } from "./api.js";
import { byId, element, fill, setClass, setText } from "./dom.js";
import { moment } from "./format.js";
import { describeLimits, readLimits, writeLimits } from "./rates.js";
import { author } from "./session.js";
import { nodeNow } from "./time.js";

const HOUR_MS = 3_600_000;
const KEEP = "keep";

const outcome = ({ limits, applies_to: rules, expires_at: end, problem }) => {
  const where = rules.length > 0 ? ` in ${rules.join(", ")}` : "; it changes no rule";
  const until = end ? `, until ${moment(end)}` : "";
  return `Set: ${describeLimits(limits)}${where}${until}.${problem ? ` But: ${problem}` : ""}`;
};

// The rules an override can be for: those that count clients.
const rulesOf = (policy) =>
  (policy?.rules ?? [])
    .filter(({ per, mode }) => per.includes("client") && mode !== "unlimited")
    .map(({ rule }) => rule);

// When it ends: as chosen, or as it does now.
const createEnds = (select) => {
  let now = null;
  return {
    offer: (end) => {
      now = end ?? null;
      select.querySelector(`[value=${KEEP}]`)?.remove();
      if (end) select.prepend(element("option", { value: KEEP }, `as now, ${moment(end)}`));
    },
    read: () => {
      if (select.value === KEEP) return now;
      return select.value === "" ? null : new Date(nodeNow() + Number(select.value) * HOUR_MS).toISOString();
    },
  };
};

const FIELDS = ["client", "tenant", "limits", "rule", "ends", "reason", "told"];

export const createOverrideForm = (onSet) => {
  const [client, tenant, limits, rule, ends, reason, told] = FIELDS.map((name) => byId(`override-${name}`));
  const form = byId("override-form");
  const end = createEnds(ends);
  let edited = null; // the override that is being changed, as it was

  const tell = (text, bad) => {
    setText(told, text);
    setClass(told, bad ? "wide problem" : "wide good");
  };

  const fillIn = (override) => {
    edited = override.limits ? override : null;
    client.value = override.client;
    tenant.value = override.tenant ?? "";
    limits.value = writeLimits(override.limits ?? []);
    rule.value = override.rule ?? "";
    reason.value = override.reason ?? "";
    end.offer(override.expires_at);
    ends.selectedIndex = 0;
    if (edited && !override.expires_at) ends.value = "";
    tell("", false);
    form.scrollIntoView({ block: "center" });
    limits.focus();
  };

  const set = async () => {
    const body = {
      limits: readLimits(limits.value, edited?.limits),
      rule: rule.value || null,
      reason: reason.value,
      author: author(),
      expires_at: end.read(),
    };
    const stored = await ask("PUT", clientPath(client.value, "limits"), { query: { tenant: tenant.value }, body });
    tell(outcome(stored), stored.problem !== null);
    onSet();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    set().catch((problem) => tell(problem.message, true));
  });
  form.addEventListener("reset", () => {
    edited = null;
    end.offer(null);
    tell("", false);
  });

  return {
    fillIn,
    // What was told last is over.
    hush: () => tell("", false),
    // Keeps what is chosen, unless the policy has it no more.
    update: ({ policy }) => {
      const rules = rulesOf(policy);
      const chosen = rule.value;
      fill(rule, rules, () => [
        element("option", { value: "" }, "every rule per client"),
        ...rules.map((name) => element("option", { value: name }, name)),
      ]);
      rule.value = rules.includes(chosen) ? chosen : "";
    },
  };
};
