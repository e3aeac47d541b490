// The slices of a launch by row (core and pipe), with what drawing them quickly needs: for each slice the latest end so
// far in its row (to find by bisection what is visible), and the cycles at work so far (to know how full a pixel is).

class Rows {
  static async load(launch) {
    const about = launch.timeline;
    const names = ["start", "length", "step", "issue", "bytes", "edgeSource", "edgeTarget", "edgeNumber", "edgeKind", "pathSlice", "pathStart", "pathEnd", "pathPiece", ...(about.detail ? ["detail"] : [])];
    const columns = await Promise.all(names.map((name) => column(about[name])));
    return new Rows(launch, Object.fromEntries(names.map((name, at) => [name, columns[at]])));
  }

  constructor(launch, columns) {
    Object.assign(this, columns, { launch, count: launch.timeline.slices });
    this.waits = Uint8Array.from(launch.steps, (step) => (step.wait ? 1 : 0));
    this.reach = new Float64Array(this.count);
    this.work = new Float64Array(this.count);
    this.workReach = new Float64Array(this.count);
    this.level = new Uint8Array(this.count);
    this.rows = launch.timeline.rows.map(([core, lane, from, to]) => ({ core, lane, from, to, name: launch.lanes[lane], levels: this.index(from, to) }));
    this.end = launch.cycles;
    for (const row of this.rows) if (row.to > row.from) this.end = Math.max(this.end, this.reach[row.to - 1]);
    this.onPath = new Map();
    this.pathSlice.forEach((slice, at) => {
      const pieces = this.onPath.get(slice);
      if (pieces) pieces.push(at);
      else this.onPath.set(slice, [at]);
    });
  }

  // Fills the columns of one row; how many slices are under way at once, at most 3.
  index(from, to) {
    let reach = 0;
    let done = 0;
    let workReach = 0;
    const ends = [0, 0, 0];
    let levels = 1;
    for (let at = from; at < to; at += 1) {
      const start = this.start[at];
      const end = start + this.length[at];
      reach = Math.max(reach, end);
      if (!this.waits[this.step[at]]) {
        done += Math.max(0, end - Math.max(start, workReach));
        workReach = Math.max(workReach, end);
      }
      this.reach[at] = reach;
      this.work[at] = done;
      this.workReach[at] = workReach;
      let level = ends.findIndex((free) => free <= start);
      if (level < 0) level = 2;
      ends[level] = Math.max(ends[level], end);
      this.level[at] = level;
      levels = Math.max(levels, level + 1);
    }
    return levels;
  }

  // The first slice of a row that ends after `time`; row.to where there is none.
  firstAfter(row, time) {
    return bisect(row.from, row.to, (at) => this.reach[at] > time);
  }

  // The first slice of a row that starts at `time` or later.
  firstFrom(row, time) {
    return bisect(row.from, row.to, (at) => this.start[at] >= time);
  }

  // Cycles at work in a row before `time`.
  workBefore(row, time) {
    const at = bisect(row.from, row.to, (one) => this.start[one] > time) - 1;
    return at < row.from ? 0 : this.work[at] - Math.max(0, this.workReach[at] - time);
  }

  // The slice of a row at `time`, the one drawn last; -1 for none. `slack` cycles to either side count too.
  at(row, time, slack) {
    let best = -1;
    const last = bisect(row.from, row.to, (one) => this.start[one] > time + slack) - 1;
    for (let at = last; at >= row.from && this.reach[at] >= time - slack && last - at < 4096; at -= 1) {
      const inside = this.start[at] <= time && this.start[at] + this.length[at] > time;
      const near = this.start[at] - slack <= time && this.start[at] + this.length[at] + slack >= time;
      if (inside) return at;
      if (near && best < 0) best = at;
    }
    return best;
  }

  rowOf(slice) {
    return this.rows[bisect(0, this.rows.length, (at) => this.rows[at].to > slice)];
  }

  stepOf(slice) {
    return this.launch.steps[this.step[slice]];
  }

  // What lets a slice go, and what it lets go: edge numbers.
  edgesOf(slice) {
    const found = [];
    for (let at = 0; at < this.edgeSource.length; at += 1) if (this.edgeSource[at] === slice || this.edgeTarget[at] === slice) found.push(at);
    return found;
  }
}

// The first number in [low, high) for which `holds`, which once true stays true; high where it never is.
function bisect(low, high, holds) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
