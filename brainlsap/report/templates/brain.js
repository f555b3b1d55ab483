"use strict";
// A small software renderer: a z-buffer that keeps the region of every pixel. It needs
// no WebGL, so it works in any browser, and pointing at a region is reading a pixel.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const el = (name) => document.getElementById(name);
  const canvas = el("brain"), context = canvas.getContext("2d");
  const NOTHING = -1, NO_REGION = -2;
  const GAP = 4; // mm between hemispheres, which inflation pushed into each other
  const state = { yaw: Math.PI, pitch: 0, zoom: 1, sides: "LR", mesh: 0, map: 0, hot: NOTHING };
  const parts = data.parts.map(unpack);
  let ids = new Int16Array(0), depth, light, image, width = 0, height = 0, sharp = 1;
  let palette = [], letters = [], waiting = false, stale = true;

  function bytes(text) {
    const raw = atob(text), out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out.buffer;
  }

  function unpack(part) {
    const faces = new Uint16Array(bytes(part.faces)), region = new Int16Array(bytes(part.region));
    const shapes = part.points.map((text) => {
      const points = Float32Array.from(new Int16Array(bytes(text)), (x) => x / 100);
      if (part.kind === "cortex") setApart(points, part.side);
      return { points: points, normals: normalsOf(points, faces), box: boxOf(points) };
    });
    const n = shapes[0].points.length / 3;
    return { kind: part.kind, side: part.side, faces: faces, region: region, shapes: shapes,
             screen: new Float32Array(3 * n), facing: new Float32Array(n) };
  }

  function setApart(points, side) {
    const sign = side === "L" ? -1 : 1;
    let inner = Infinity;
    for (let i = 0; i < points.length; i += 3) inner = Math.min(inner, sign * points[i]);
    if (inner > 0) return; // the folded surfaces are apart as they are
    for (let i = 0; i < points.length; i += 3) points[i] += sign * (GAP / 2 - inner);
  }

  function boxOf(points) {
    const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
    for (let i = 0; i < points.length; i++) {
      low[i % 3] = Math.min(low[i % 3], points[i]);
      high[i % 3] = Math.max(high[i % 3], points[i]);
    }
    return { low: low, high: high };
  }

  function normalsOf(points, faces) {
    const out = new Float32Array(points.length);
    for (let f = 0; f < faces.length; f += 3) {
      const a = 3 * faces[f], b = 3 * faces[f + 1], c = 3 * faces[f + 2];
      const ux = points[b] - points[a], uy = points[b + 1] - points[a + 1], uz = points[b + 2] - points[a + 2];
      const vx = points[c] - points[a], vy = points[c + 1] - points[a + 1], vz = points[c + 2] - points[a + 2];
      const n = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
      for (const corner of [a, b, c]) for (let k = 0; k < 3; k++) out[corner + k] += n[k];
    }
    for (let i = 0; i < out.length; i += 3) {
      const size = Math.hypot(out[i], out[i + 1], out[i + 2]) || 1;
      for (let k = 0; k < 3; k++) out[i + k] /= size;
    }
    return out;
  }

  // Screen axes in the brain's coordinates (right, anterior, superior): as CAMERAS.
  function axes() {
    const cy = Math.cos(state.yaw), sy = Math.sin(state.yaw), cp = Math.cos(state.pitch), sp = Math.sin(state.pitch);
    return { right: [-sy, cy, 0], up: [-sp * cy, -sp * sy, cp], toward: [cp * cy, cp * sy, sp] };
  }

  function draw() {
    waiting = false;
    if (fit() || stale) look();
    paint();
    write();
  }

  // Find the region of every pixel; only needed where something moved.
  function look() {
    stale = false;
    ids.fill(NOTHING);
    depth.fill(-Infinity);
    const turned = axes(), seen = parts.filter((part) => state.sides.includes(part.side));
    const below = seen.filter((part) => part.kind === "subcortex");
    const share = below.length ? 0.68 : 1;
    const shown = [[seen.filter((part) => part.kind === "cortex"), 0, share], [below, share, 1 - share]];
    letters = shown.flatMap((one) => lookAt(one[0], one[1] * width, one[2] * width, turned));
  }

  function fit() {
    const box = canvas.getBoundingClientRect();
    sharp = Math.min(2, Math.max(1.5, window.devicePixelRatio || 1));
    const w = Math.max(1, Math.round(box.width * sharp)), h = Math.max(1, Math.round(box.height * sharp));
    if (w === width && h === height) return false;
    width = canvas.width = w;
    height = canvas.height = h;
    ids = new Int16Array(w * h);
    depth = new Float32Array(w * h);
    light = new Float32Array(w * h);
    image = context.createImageData(w, h);
    return true;
  }

  function lookAt(group, left, room, turned) {
    if (!group.length) return [];
    const shapes = group.map((part) => part.shapes[Math.min(state.mesh, part.shapes.length - 1)]);
    const low = [0, 1, 2].map((k) => Math.min(...shapes.map((one) => one.box.low[k])));
    const high = [0, 1, 2].map((k) => Math.max(...shapes.map((one) => one.box.high[k])));
    const centre = low.map((x, k) => (x + high[k]) / 2);
    // What of the box shows from here, so that nothing leaves the canvas.
    const span = (axis) => high.reduce((sum, x, k) => sum + Math.abs(axis[k]) * (x - low[k]), 0);
    const scale = 0.94 * state.zoom * Math.min(room / span(turned.right), height / span(turned.up));
    return group.map((part, k) => {
      project(part, shapes[k], turned, centre, scale, left + room / 2);
      rasterise(part);
      return letterOf(part);
    });
  }

  function project(part, shape, turned, centre, scale, middle) {
    const points = shape.points, normals = shape.normals, screen = part.screen;
    const r = turned.right, u = turned.up, t = turned.toward;
    for (let i = 0, v = 0; i < points.length; i += 3, v++) {
      const x = points[i] - centre[0], y = points[i + 1] - centre[1], z = points[i + 2] - centre[2];
      screen[i] = middle + scale * (r[0] * x + r[1] * y + r[2] * z);
      screen[i + 1] = height / 2 - scale * (u[0] * x + u[1] * y + u[2] * z);
      screen[i + 2] = t[0] * x + t[1] * y + t[2] * z;
      part.facing[v] = t[0] * normals[i] + t[1] * normals[i + 1] + t[2] * normals[i + 2];
    }
  }

  function rasterise(part) {
    const s = part.screen, faces = part.faces, facing = part.facing;
    for (let f = 0, one = 0; f < faces.length; f += 3, one++) {
      const va = faces[f], vb = faces[f + 1], vc = faces[f + 2], a = 3 * va, b = 3 * vb, c = 3 * vc;
      const ax = s[a], ay = s[a + 1], bx = s[b], by = s[b + 1], cx = s[c], cy = s[c + 1];
      const area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
      if (area >= 0) continue; // it shows its back (rows count downwards)
      const x0 = Math.max(0, Math.ceil(Math.min(ax, bx, cx))), x1 = Math.min(width - 1, Math.floor(Math.max(ax, bx, cx)));
      const y0 = Math.max(0, Math.ceil(Math.min(ay, by, cy))), y1 = Math.min(height - 1, Math.floor(Math.max(ay, by, cy)));
      for (let y = y0; y <= y1; y++) {
        for (let x = x0; x <= x1; x++) {
          const p = ((bx - x) * (cy - y) - (by - y) * (cx - x)) / area;
          const q = ((cx - x) * (ay - y) - (cy - y) * (ax - x)) / area;
          const w = 1 - p - q;
          if (p < -1e-6 || q < -1e-6 || w < -1e-6) continue;
          const z = p * s[a + 2] + q * s[b + 2] + w * s[c + 2], pixel = y * width + x;
          if (z <= depth[pixel]) continue;
          depth[pixel] = z;
          ids[pixel] = part.region[one];
          light[pixel] = p * facing[va] + q * facing[vb] + w * facing[vc];
        }
      }
    }
  }

  function paint() {
    const out = image.data, mark = cssColour("--mark"), wide = Math.round(sharp);
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i], k = 4 * i;
      if (id === NOTHING) { out[k + 3] = 0; continue; }
      const away = 1 - Math.min(1, Math.max(0, light[i]));
      let colour = palette[id < 0 ? palette.length - 1 : id], dim = 1 - 0.4 * away * away;
      if (ids[i + 1] !== id || ids[i + width] !== id) { colour = [43, 43, 43]; dim = 1; }
      if (id === state.hot && atRim(i, id, wide)) { colour = mark; dim = 1; }
      out[k] = colour[0] * dim;
      out[k + 1] = colour[1] * dim;
      out[k + 2] = colour[2] * dim;
      out[k + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  function atRim(i, id, wide) {
    return ids[i + wide] !== id || ids[i - wide] !== id || ids[i + wide * width] !== id || ids[i - wide * width] !== id;
  }

  function letterOf(part) {
    let left = Infinity, right = -Infinity, bottom = -Infinity;
    for (let i = 0; i < part.screen.length; i += 3) {
      left = Math.min(left, part.screen[i]);
      right = Math.max(right, part.screen[i]);
      bottom = Math.max(bottom, part.screen[i + 1]);
    }
    return { text: part.side, x: (left + right) / 2, y: bottom, kind: part.kind };
  }

  function write() {
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    context.font = Math.round(14 * sharp) + "px system-ui, sans-serif";
    context.textAlign = "center";
    for (const one of letters) {
      const near = letters.some((other) => other !== one && other.kind === one.kind && Math.abs(other.x - one.x) < 40 * sharp);
      if (!near) context.fillText(one.text, one.x, Math.min(height - 3 * sharp, one.y + 15 * sharp));
    }
  }

  function cssColour(name) {
    return rgb(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  }

  function rgb(hex) {
    return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  }

  function move() {
    stale = true;
    redraw();
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    window.requestAnimationFrame(draw);
  }

  // --- what is said about a region

  function number(value) {
    return value === null ? "no value" : String(Number(value.toPrecision(4)));
  }

  function sentence(id) {
    if (id === NOTHING) return "Point at a region.";
    if (id === NO_REGION) return "No region (medial wall).";
    const map = data.maps[state.map], rank = map.ranks[id];
    const place = rank === null ? "" : ", rank " + rank + " of " + map.ranked;
    return data.regions[id][0] + " (" + data.regions[id][1] + "): " + number(map.values[id]) + place;
  }

  function heat(id) {
    if (id !== state.hot) {
      const rows = el("rows").querySelectorAll("tr");
      for (const row of rows) row.classList.toggle("hot", Number(row.dataset.region) === id);
      state.hot = id;
      redraw();
    }
    el("says").textContent = sentence(id);
    const value = id >= 0 ? data.maps[state.map].values[id] : null;
    const share = value === null ? 0 : Math.min(1, Math.max(0, (value - data.bar.low) / (data.bar.high - data.bar.low)));
    el("here").style.visibility = value === null ? "hidden" : "visible";
    el("here").style.left = 100 * share + "%";
  }

  function setMap(place) {
    state.map = place;
    palette = data.maps[place].colours.concat([data.wall]).map(rgb);
    const map = data.maps[place], order = data.regions.map((_, k) => k);
    const late = (k) => (map.ranks[k] === null ? Infinity : map.ranks[k]);
    order.sort((a, b) => (late(a) === late(b) ? a - b : late(a) - late(b)));
    el("rows").replaceChildren(...order.map((k) => row(k, map)));
    el("told").textContent = data.order + (map.name ? " Map: " + map.name + "." : "");
    heat(state.hot);
    redraw();
  }

  function row(k, map) {
    const line = document.createElement("tr"), button = document.createElement("button");
    line.dataset.region = k;
    button.type = "button";
    button.textContent = data.regions[k][0];
    button.addEventListener("click", () => turnTo(k));
    button.addEventListener("focus", () => heat(k));
    line.addEventListener("pointerenter", () => heat(k));
    const cells = [map.ranks[k] === null ? "" : String(map.ranks[k]), button, data.regions[k][1], number(map.values[k])];
    cells.forEach((cell, place) => {
      const box = document.createElement("td");
      if (place === 0 || place === 3) box.className = "number";
      box.append(cell);
      line.append(box);
    });
    return line;
  }

  // Turn the side of a region that faces outwards to the viewer.
  function turnTo(id) {
    for (const part of parts) {
      const shape = part.shapes[Math.min(state.mesh, part.shapes.length - 1)], mean = [0, 0, 0];
      part.region.forEach((one, f) => {
        if (one === id) for (let k = 0; k < 3; k++) mean[k] += shape.normals[3 * part.faces[3 * f] + k];
      });
      const size = Math.hypot(mean[0], mean[1], mean[2]);
      if (!size) continue;
      state.sides = part.side;
      if (part.kind === "cortex") {
        state.pitch = Math.asin(mean[2] / size);
        state.yaw = Math.atan2(mean[1], mean[0]);
      }
    }
    el("view").selectedIndex = -1;
    heat(id);
    move();
    el("stage").scrollIntoView({ block: "nearest" });
  }

  function setView(key) {
    const view = data.views[key];
    state.yaw = view.yaw;
    state.pitch = view.pitch;
    state.sides = view.sides;
    move();
  }

  // --- pointer and keyboard

  let dragging = null;

  function pointed(event) {
    if (stale) draw(); // what is pointed at is what was last asked for
    const box = canvas.getBoundingClientRect();
    const x = Math.round((event.clientX - box.left) * sharp), y = Math.round((event.clientY - box.top) * sharp);
    return x >= 0 && y >= 0 && x < width && y < height ? ids[y * width + x] : NOTHING;
  }

  function tip(event, id) {
    const box = el("stage").getBoundingClientRect(), note = el("tip");
    note.style.visibility = id === NOTHING ? "hidden" : "visible";
    note.textContent = sentence(id).replace(/ \(.*\)(?=: )/, ""); // the long name stands below
    const x = event.clientX - box.left + 14, y = event.clientY - box.top + 14;
    note.style.left = Math.max(0, Math.min(x, box.width - note.offsetWidth)) + "px";
    note.style.top = y + "px";
  }

  canvas.addEventListener("pointermove", (event) => {
    if (dragging) {
      turn((event.clientX - dragging.x) * 0.01, (event.clientY - dragging.y) * 0.01);
      dragging = { x: event.clientX, y: event.clientY };
      return;
    }
    const id = pointed(event);
    heat(id);
    tip(event, id);
  });
  canvas.addEventListener("pointerleave", () => { heat(NOTHING); el("tip").style.visibility = "hidden"; });
  canvas.addEventListener("pointerdown", (event) => {
    dragging = { x: event.clientX, y: event.clientY };
    el("tip").style.visibility = "hidden";
    canvas.setPointerCapture(event.pointerId);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { dragging = null; });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); come(Math.exp(-event.deltaY * 0.001)); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const keys = {
      ArrowLeft: () => turn(-0.15, 0), ArrowRight: () => turn(0.15, 0),
      ArrowUp: () => turn(0, -0.15), ArrowDown: () => turn(0, 0.15),
      "+": () => come(1.1), "=": () => come(1.1), "-": () => come(1 / 1.1),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  function turn(across, down) {
    state.yaw -= across;
    state.pitch = Math.min(Math.PI / 2, Math.max(-Math.PI / 2, state.pitch + down));
    move();
  }

  function come(times) {
    state.zoom = Math.min(6, Math.max(0.5, state.zoom * times));
    move();
  }

  el("map").addEventListener("change", (event) => setMap(event.target.selectedIndex));
  el("view").addEventListener("change", (event) => setView(event.target.value));
  el("mesh").addEventListener("change", (event) => { state.mesh = event.target.selectedIndex; move(); });
  el("controls").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", redraw);
  const dusk = window.matchMedia("(prefers-color-scheme: dark)");
  if (dusk.addEventListener) dusk.addEventListener("change", redraw);

  el("colours").style.background = "linear-gradient(to right, " + data.bar.colours.join(",") + ")";
  el("grey").style.background = data.grey;
  el("ticks").replaceChildren(...[0, 0.5, 1].map((share) => {
    const tick = document.createElement("span");
    tick.textContent = number(data.bar.low + share * (data.bar.high - data.bar.low));
    return tick;
  }));
  setMap(0);
  setView(el("view").value);
  draw();
})();
