// The interface as a page. Enters: /openapi.json. Leaves: a section an endpoint, with the fields of its body.

import { by, h } from "./dom.js";

const theme = localStorage.getItem("structgen-theme") ?? "auto";
if (theme !== "auto") document.documentElement.dataset.theme = theme;

// A schema of OpenAPI in a few words.
function words(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const branches = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (branches) return branches.map(words).join(" | ");
  if (schema.type === "array") return `list of ${words(schema.items) || "anything"}`;
  const limits = ["minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems", "maxLength"]
    .filter((name) => schema[name] !== undefined)
    .map((name) => `${name} ${schema[name]}`);
  return [schema.type ?? "anything", ...limits].join(", ");
}

function fields(schema, all) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    h(
      "tr",
      null,
      h("td", null, h("code", null, name)),
      h("td", null, words(field)),
      h("td", null, schema.required?.includes(name) ? "required" : field.default !== undefined ? `default ${JSON.stringify(field.default)}` : ""),
    ),
  );
  return h("table", null, h("caption", null, all), h("tr", null, ["field", "value", ""].map((t) => h("th", null, t))), rows);
}

function operation(path, verb, one, schemas) {
  const body = one.requestBody?.content?.["application/json"]?.schema;
  const name = body?.$ref?.split("/").pop();
  const parts = [];
  if (one.description) parts.push(h("p", null, one.description));
  if (one.parameters?.length) parts.push(h("p", null, "In the path: ", one.parameters.map((p) => p.name).join(", ")));
  const shown = new Set();
  const show = (title) => {
    if (shown.has(title) || !schemas[title]?.properties) return;
    shown.add(title);
    parts.push(fields(schemas[title], title));
    for (const match of JSON.stringify(schemas[title]).matchAll(/#\/components\/schemas\/([\w-]+)/g)) show(match[1]);
  };
  if (name) show(name);
  if (!parts.length) parts.push(h("p", { class: "hint" }, "No body."));
  return h("details", { open: path === "/v1/chat/completions" }, h("summary", null, h("span", { class: "verb" }, verb.toUpperCase()), " ", h("code", null, path)), parts);
}

try {
  const api = await (await fetch("/openapi.json")).json();
  by("about").textContent = `${api.info.title} ${api.info.version}; docs/server.md says what the fields mean`;
  const found = [];
  for (const [path, verbs] of Object.entries(api.paths)) {
    for (const [verb, one] of Object.entries(verbs)) found.push(operation(path, verb, one, api.components?.schemas ?? {}));
  }
  by("operations").replaceChildren(h("h2", null, "Endpoints"), ...found);
} catch (error) {
  by("status").textContent = `openapi.json cannot be read: ${error.message}`;
}
