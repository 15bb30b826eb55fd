//! A passed plan becomes the plan; and the world's own changes of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Engine;
use crate::check::{Checked, occupied, occupied_counters, occupied_shares};
use crate::deadlines::Timetable;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Life;
use crate::model::plan::{Amendment, Assignment};
use crate::model::report::Report;

impl Engine {
    /// Adopts an amendment that the checker has passed, with what its report says of waiting jobs.
    pub(super) fn adopt(&mut self, amendment: Checked<Amendment>, report: Report) {
        let mut amendment = amendment.into_inner();
        let assignments = std::mem::take(&mut amendment.assignments);
        self.index.redirected.extend(amendment.traffic.keys().chain(amendment.weights.keys()));
        self.state.plan.adopt_all_but_assignments(amendment);
        // Capacity is released before it is taken: an assignment may rest on what another job releases.
        for id in assignments.keys() {
            self.index.step_out(&mut self.state, *id);
            self.drop_from_plan(*id);
        }
        for (id, standing) in &report.standings {
            if let Some(job) = self.state.jobs.get_mut(*id) {
                job.standing = *standing;
            }
        }
        for (id, change) in assignments {
            if let Some(assignment) = change {
                self.put_into_plan(id, assignment);
            }
            self.index.line_up(&mut self.state, id);
        }
        self.state.displaced.extend(report.displaced.iter().copied());
        // Jobs that were just put back into the queue were looked at in this very pass.
        self.state.dirty = report.cut_short;
        let entries = std::mem::take(&mut self.state.plan.timetable.entries);
        self.state.plan.timetable = Timetable { entries, ..report.timetable_basis.clone() };
        self.state.decision_inputs.clone_from(&report.decision_inputs);
        self.finish_pass(report);
    }

    fn put_into_plan(&mut self, id: JobId, assignment: Arc<Assignment>) {
        self.index.hold(&self.state, id, &assignment);
        let spec = &self.state.jobs[id].spec;
        self.index.checker.record(&self.state.cluster, &self.state.queues, id, spec, Some(&assignment));
        self.state.plan.set(id, Some(assignment));
        self.index.recheck_directive(&self.state, id);
        self.index.recount(&mut self.state, id);
        self.index.unsettled.insert(id);
    }

    /// Takes a job out of the plan, if it is in it; its room is free for others to be planned into.
    pub(super) fn drop_from_plan(&mut self, id: JobId) {
        if let Some(old) = self.state.plan.set(id, None) {
            self.index.recheck_directive(&self.state, id);
            // A booked job may have to be given another place.
            self.state.plan.timetable.made = None;
            self.index.let_go(&self.state, id, &old);
            self.index.checker.record(
                &self.state.cluster,
                &self.state.queues,
                id,
                &self.state.jobs[id].spec,
                None,
            );
            self.index.recount(&mut self.state, id);
            self.index.unsettled.insert(id);
            self.state.dirty = true;
        }
    }

    /// Puts a job into the plan where it is, whatever the plan says. Whoever was planned into its room and is not
    /// there yet goes back to where it is, the youngest first. If that does not suffice, the world has put more on the
    /// node than it has: then it is overcommitted.
    pub(super) fn put_back_into_plan(&mut self, id: JobId, assignment: Arc<Assignment>) {
        self.drop_from_plan(id);
        while let Some(intruder) = self.intruder(&assignment) {
            self.back_to_where_it_is(intruder);
        }
        self.put_where_it_is(id, assignment);
    }

    /// Puts a job into the plan where it is in fact: if that is more than a node has, it is the world's doing.
    pub(super) fn put_where_it_is(&mut self, id: JobId, assignment: Arc<Assignment>) {
        let nodes: Vec<NodeId> = assignment.nodes().collect();
        self.put_into_plan(id, assignment);
        if self.is_settled(id) {
            self.index.unsettled.remove(&id);
        }
        self.index.checker.excuse(&self.state.cluster, nodes);
    }

    /// Somebody not there yet without whom there would be more of the room that an assignment lacks.
    fn intruder(&self, assignment: &Assignment) -> Option<JobId> {
        let lacking = self.index.room.taken().lacking(&self.state.cluster, assignment);
        lacking.into_iter().find_map(|node| self.planned_but_not_there(node).next_back())
    }

    pub(super) fn is_planned_elsewhere(&self, id: JobId) -> bool {
        let planned = self.state.plan.get(id);
        planned.is_some_and(|planned| !self.state.jobs[id].life.is_about(planned))
    }

    /// Jobs that are planned onto a node and do not hold what is planned, in order of age.
    pub(super) fn planned_but_not_there(
        &self,
        node: NodeId,
    ) -> impl DoubleEndedIterator<Item = JobId> + use<> {
        let touches = |id: JobId| self.state.plan.get(id).is_some_and(|planned| planned.touches(node));
        // Whoever is settled and has nothing under way is where it is planned.
        let moving = self.index.unsettled.iter().chain(self.state.under_way.keys()).copied();
        let ids: BTreeSet<JobId> =
            moving.filter(|id| touches(*id) && self.is_planned_elsewhere(*id)).collect();
        ids.into_iter()
    }

    /// Back into the line; or, if it runs and was to change places, it stays.
    pub(super) fn back_to_where_it_is(&mut self, id: JobId) {
        self.drop_from_plan(id);
        if let Life::Running(held) = &self.state.jobs[id].life {
            let held = held.clone();
            self.put_back_into_plan(id, held);
        }
        self.index.line_up(&mut self.state, id);
    }

    /// Every so often the whole plan, and what jobs hold in fact, are added up from nothing.
    pub(super) fn check_all_at_times(&mut self) {
        if !self.state.cycles.is_multiple_of(self.state.settings.full_check_every.max(1)) {
            return;
        }
        if let Err(violation) = self.index.checker.check_all(&self.snapshot()) {
            self.alarm(violation.to_string());
        }
        if let Err(astray) = self.recount_all() {
            self.alarm(format!("the count of {astray} has gone astray"));
        }
    }

    fn recount_all(&self) -> Result<(), &'static str> {
        let nodes = self.state.cluster.nodes().len();
        let jobs = || self.state.jobs.iter().map(|(_, job)| job);
        let counters: Vec<_> = self.index.occupied.counters().collect();
        if occupied(nodes, jobs()) != *self.index.occupied.resources() {
            return Err("what jobs hold");
        }
        if occupied_counters(jobs()) != counters {
            return Err("the counters that jobs hold");
        }
        if occupied_shares(jobs()) != self.index.occupied.device_allocations().collect::<Vec<_>>() {
            return Err("the devices that jobs share");
        }
        if !self.queues_are_right() {
            return Err("what queues hold");
        }
        self.groups_are_right().then_some(()).ok_or("who is where")
    }
}
