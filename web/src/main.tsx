// Starts the page.

import { render } from "preact";

import { App } from "./app";
import { connect } from "./model/live";

const host = document.getElementById("page")!;
host.replaceChildren();
render(<App />, host);
void connect();
