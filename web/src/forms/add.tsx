// Adding pods and nodes to a demo, from what the server offers as templates or from YAML.

import { useSignal } from "@preact/signals";

import { act } from "../model/server";
import { useDocument } from "../views/loading";
import { Field, FormDialog, SourceChoice } from "./dialog";

interface Templates {
  pods: { name: string; title: string; cpu: string; memory: string }[];
  shapes: { title: string; shape: string }[];
}

const POD_YAML = `apiVersion: v1
kind: Pod
metadata:
  name: mine
  namespace: default
spec:
  containers:
    - name: main
      image: registry.k8s.io/pause
      resources:
        requests: {cpu: 500m, memory: 256Mi}
`;

const NODE_YAML = `apiVersion: v1
kind: Node
metadata:
  name: mine
  labels:
    topology.kubernetes.io/zone: zone-a
status:
  allocatable: {cpu: "8", memory: 32Gi, pods: "110"}
`;

function given(text: string): string | undefined {
  return text.trim() || undefined;
}

function givenNumber(text: string): number | undefined {
  return text.trim() === "" ? undefined : Number(text);
}

// "a=b, c=d" as an object.
function selectorOf(text: string): Record<string, string> | undefined {
  const pairs = text.split(",").filter((part) => part.trim() !== "");
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(
    pairs.map((pair) => {
      const [key, ...value] = pair.split("=");
      return [key.trim(), value.join("=").trim()];
    }),
  );
}

export function AddPods({ onClose }: { onClose: () => void }) {
  const templates = useDocument<Templates>("templates", "");
  const fromText = useSignal(false);
  const text = useSignal(POD_YAML);
  const template = useSignal("");
  const pods = useSignal("5");
  const namespace = useSignal("");
  const name = useSignal("");
  const cpu = useSignal("");
  const memory = useSignal("");
  const priority = useSignal("");
  const nodeSelector = useSignal("");
  const runSeconds = useSignal("");
  const offered = templates.value?.pods ?? [];
  const chosen = offered.find((entry) => entry.name === template.value) ?? offered[0];
  const run = () =>
    fromText.value
      ? act("create", { text: text.value })
      : act("add-pods", {
          template: chosen?.name ?? "",
          count: Number(pods.value),
          namespace: given(namespace.value),
          name: given(name.value),
          cpu: given(cpu.value),
          memory: given(memory.value),
          priority: given(priority.value),
          nodeSelector: selectorOf(nodeSelector.value),
          runSeconds: givenNumber(runSeconds.value),
        });
  return (
    <FormDialog title="Add pods" submit="Add" run={run} onClose={onClose}>
      <SourceChoice fromText={fromText.value} other="Template" onChange={(choice) => (fromText.value = choice)} />
      {templates.error && <p class="error">{templates.error}</p>}
      {fromText.value ? (
        <Field label="One or several documents" wide>
          <textarea spellcheck={false} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
        </Field>
      ) : (
        <div class="fields">
          <Field label="Template" wide>
            <select value={chosen?.name} onChange={(event) => (template.value = event.currentTarget.value)}>
              {offered.map((entry) => (
                <option key={entry.name} value={entry.name}>
                  {entry.title} ({entry.cpu} cpu, {entry.memory})
                </option>
              ))}
            </select>
          </Field>
          <Field label="How many">
            <input
              type="number"
              min="1"
              max="1000"
              required
              value={pods.value}
              onInput={(event) => (pods.value = event.currentTarget.value)}
            />
          </Field>
          <Text label="Name" value={name} />
          <Text label="Namespace" value={namespace} />
          <Text label="CPU, each" value={cpu} placeholder={chosen?.cpu} />
          <Text label="Memory, each" value={memory} placeholder={chosen?.memory} />
          <Text label="Priority class" value={priority} />
          <Text label="Node selector" value={nodeSelector} placeholder="pool=large" />
          <Text label="Ends after seconds" value={runSeconds} numeric />
        </div>
      )}
    </FormDialog>
  );
}

interface TextProps {
  label: string;
  value: { value: string };
  placeholder?: string;
  numeric?: boolean;
}

function Text({ label, value, placeholder, numeric }: TextProps) {
  return (
    <Field label={label}>
      <input
        inputMode={numeric ? "numeric" : "text"}
        placeholder={placeholder}
        value={value.value}
        onInput={(event) => (value.value = event.currentTarget.value)}
      />
    </Field>
  );
}

export function AddNodes({ onClose }: { onClose: () => void }) {
  const templates = useDocument<Templates>("templates", "");
  const fromText = useSignal(false);
  const text = useSignal(NODE_YAML);
  const shape = useSignal("");
  const nodes = useSignal("3");
  const offered = templates.value?.shapes ?? [];
  const written = shape.value || offered[0]?.shape || "";
  const run = () =>
    fromText.value
      ? act("create", { text: text.value })
      : act("add-nodes", { shape: written, count: Number(nodes.value) });
  return (
    <FormDialog title="Add nodes" submit="Add" run={run} onClose={onClose}>
      <SourceChoice fromText={fromText.value} other="Shape" onChange={(choice) => (fromText.value = choice)} />
      {templates.error && <p class="error">{templates.error}</p>}
      {fromText.value ? (
        <Field label="One or several documents" wide>
          <textarea spellcheck={false} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
        </Field>
      ) : (
        <div class="fields">
          <Field label="Kind of node" wide>
            <select value={written} onChange={(event) => (shape.value = event.currentTarget.value)}>
              {offered.map((entry) => (
                <option key={entry.shape} value={entry.shape}>
                  {entry.title}
                </option>
              ))}
              {!offered.some((entry) => entry.shape === written) && <option value={written}>as written below</option>}
            </select>
          </Field>
          <Field label="Shape: resources, and labels as label.KEY=VALUE" wide>
            <input value={written} onInput={(event) => (shape.value = event.currentTarget.value)} />
          </Field>
          <Field label="How many">
            <input
              type="number"
              min="1"
              max="1000"
              required
              value={nodes.value}
              onInput={(event) => (nodes.value = event.currentTarget.value)}
            />
          </Field>
        </div>
      )}
    </FormDialog>
  );
}

export function LoadCluster({ onClose }: { onClose: () => void }) {
  const text = useSignal("");
  const name = useSignal("");
  const read = async (input: HTMLInputElement) => {
    const file = input.files?.[0];
    text.value = (await file?.text()) ?? "";
    name.value = file?.name ?? "";
  };
  const load = () => act("load", { text: text.value, name: name.value || undefined });
  return (
    <FormDialog title="Load a cluster or a scenario" submit="Replace the cluster" run={load} onClose={onClose}>
      <p class="faint">All nodes, workloads and pods are replaced by those of the file.</p>
      <Field label="A saved cluster, manifests or a scenario, YAML or JSON" wide>
        <input type="file" accept=".json,.yaml,.yml" onChange={(event) => void read(event.currentTarget)} />
      </Field>
      <Field label="Or as text" wide>
        <textarea spellcheck={false} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
      </Field>
    </FormDialog>
  );
}
