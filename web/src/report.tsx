// The picture of a plan in a report, as on the page. The data are in the document.

import { render } from "preact";

import type { PlanView } from "./model/server";
import { PlanPicture } from "./views/plan";

const data = document.getElementById("data-plan");
const place = document.getElementById("plan-picture");
if (data && place) render(<PlanPicture view={JSON.parse(data.textContent) as PlanView} />, place);
