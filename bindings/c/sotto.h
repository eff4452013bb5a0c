// sotto from C, and from every language that calls C: libsotto.so, `pkg-config sotto-c`.
//
//   sotto_optimizer* optimizer = NULL;
//   const char* settings[] = {"compressor", "quant:8", "lr", "0.05", NULL};
//   if (sotto_optimizer_create(settings, parameters, count, NULL, NULL, &optimizer) != SOTTO_OK) {
//     fprintf(stderr, "%s\n", sotto_last_error());
//   }
//   for (each batch) {
//     (compute the gradient at `parameters`)
//     sotto_optimizer_step(optimizer, gradient, count);
//   }
//   sotto_optimizer_finish(optimizer);
//   sotto_optimizer_destroy(optimizer);
//
// Stability: names, arguments and numbers here keep their meaning as long as the library's
// SOVERSION stays; settings are text, so that new ones need no new functions. Structures are never
// exposed.
//
// Errors: what can fail returns a sotto_status; SOTTO_OK is 0. sotto_last_error() then says what is
// wrong, where and what would do. No exception and no signal leaves the library. Where a call
// fails, its outputs are as they were, unless said otherwise. A null pointer where an object is
// needed gives SOTTO_REFUSED. A handle that has been destroyed must not be used again, nor
// destroyed again.
//
// Threads: different objects may be used by different threads at one time. A sotto_optimizer, a
// sotto_site, a sotto_elastic_optimizer and a sotto_compressor take one thread at a time, whichever
// it is; a second one meanwhile gets SOTTO_REFUSED and changes nothing. Stores, topologies, and
// layouts and setups that are complete may be shared. Calls may block until a peer answers or its
// timeout is over: hold no lock that another node of the same process needs. The only callback is a
// step rule of the caller's own. Destroying is for one thread, when no other is inside a call.
// After fork() the child must not use what the parent made.
//
// Ends. A word has one meaning, whichever object it is of:
//
//   finish      ends in good order; no step may follow
//   leave       finish, for a node that ends before its run
//   ask_to_end  wants all nodes to end together, after a round that they agree on: SOTTO_ENDED
//   give_up     ends the run at all nodes, for a reason that they are told: SOTTO_PEER_LOST
//   stop        this node waits no more and is over, and finish or leave follows: SOTTO_STOPPED
//   cancel      ends one wait, and the node goes on: SOTTO_STOPPED
//   interrupt   ends this node's calls, and the run or the study with them: SOTTO_STOPPED
//   destroy     leaves at once, as a process that dies does
//
// Functions with * may be called from any thread, and by a signal's handler, while another call is
// under way; they return at once. The settings timeout and leave-within are spans of time.
//
//   sotto_...                    who is told            waits at most      may steps follow
//   optimizer_finish             all nodes              timeout, for each  no
//   optimizer_finish_with_mean   all nodes              timeout, for each  no
//   optimizer_give_up            all nodes, why         for the store      no
// * optimizer_ask_to_end         all nodes              -                  until SOTTO_ENDED
// * optimizer_interrupt          all that can be        -                  no
// * interrupt_raise              as by the one above    -                  no
//   optimizer_destroy            nobody                 -                  -
//   site_finish                  a run's other nodes    for its folder     no
//   site_leave                   a run's other nodes    leave-within       no
// * site_stop                    nobody                 -                  yes; they do not wait
//   site_destroy                 nobody                 -                  -
//   elastic_optimizer_finish     the other nodes        leave-within       no
// * elastic_optimizer_stop       nobody                 -                  yes; they do not wait
// * elastic_optimizer_cancel     nobody                 -                  yes
//   elastic_optimizer_destroy    nobody                 -                  -
//
// Where a sotto_optimizer tells nobody, the other nodes lose a peer: SOTTO_PEER_LOST. With the
// setting join, its finish also waits for as long as others have data. A site tells others where it
// is a node of a run (the setting nodes).
//
// Text is UTF-8 that ends with a zero byte. Numbers in texts have the form of C's, whatever the
// locale.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#error "sotto needs a POSIX system"
#endif
// Marks what the library exports.
#define SOTTO_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// ----- Errors

// One of the numbers below.
typedef int sotto_status;
enum {
  SOTTO_OK = 0,
  SOTTO_REFUSED = 1,     // a mistake in the request: a wrong setting, length or order of calls
  SOTTO_MALFORMED = 2,   // bytes that break the format
  SOTTO_UNEXPECTED = 3,  // well-formed, but of another run, or made under other settings
  SOTTO_NON_FINITE = 4,  // a NaN or an infinity
  SOTTO_PEER_LOST = 5,   // a peer closed, crashed or became unreachable
  SOTTO_DEADLINE = 6,    // a wait ended without what it waited for
  SOTTO_IO = 7,          // the operating system refused a read or write
  SOTTO_BUDGET = 8,      // the privacy budget is spent
  SOTTO_TOO_SMALL = 9,   // a buffer of the caller's is too small; the size needed is given
  SOTTO_NO_MEMORY = 10,  // memory ran out
  SOTTO_INTERNAL = 11,   // none of these; please report it with the message
  SOTTO_ENDED = 12,      // the nodes have agreed to end the run here
  SOTTO_STOPPED = 13     // the caller wanted this call to end (_stop, _cancel, _interrupt)
};

// The version of the library, "0.1.0".
SOTTO_API const char* sotto_version(void);

// The message of the last failed call of this thread; "" when none has failed. Valid until the next
// call of this thread.
SOTTO_API const char* sotto_last_error(void);

// "peer_lost" and the like; "unknown" for a number that is none of the above.
SOTTO_API const char* sotto_status_name(sotto_status status);

// Frees a text or a state that the library returned; null is fine.
SOTTO_API void sotto_free(void* given);

// Lists the choices as a JSON array of objects, each with a "name". `kind` is "algorithms",
// "rules", "compressors", "topologies", "transports", "settings", "site-settings" or
// "elastic-settings". Free it with sotto_free.
SOTTO_API sotto_status sotto_list(const char* kind, char** json);

// ----- Settings
//
// Names and values in turn, and a null pointer at the end: {"algorithm", "choco", "lr", "0.05",
// NULL}; a null pointer for the whole means no settings. Names are those of the options of
// `sotto train` and of sotto_list("settings"); dashes and underscores are one. Switches are "true"
// or "false". In addition:
//
// - rank: this node, from 0; needed with `nodes`
//
// - seed: of everything random; 0 by default; the same at all nodes
//
// - rounds: the length of the run, for schedules and for noise chosen by privacy-epsilon
//
// - sampling-rate, privacy-batch: with privacy-unit "example", the Poisson sample (docs/privacy.md)
//
// - privacy-ledger: a file that keeps what is spent of the budget
//
// - metrics, log-json, tensorboard, trace and report-every: outputs of the run's figures, and how
// often all nodes report their state to node 0 for them (docs/observability.md); the same at all
// nodes
//
// - job.NAME: anything else that all nodes must agree on, e.g. {"job.model", "resnet18"}
//
// Without `nodes`, the variables of a launcher (mpirun, srun, torchrun) or `key` and `peers` give
// this node's rank and the addresses of the others. The file of `peers` may change during the run:
// within a second its new lines are in force, and the report's warnings say so.

// ----- Tensors of a flat parameter vector

// The tensors that a flat vector consists of, in order.
typedef struct sotto_layout sotto_layout;

// An empty layout, for sotto_layout_add.
SOTTO_API sotto_status sotto_layout_create(sotto_layout** out);
// The next tensor, `dimensions` sizes in row-major order; 0 dimensions: a scalar.
SOTTO_API sotto_status sotto_layout_add(sotto_layout* layout, const char* name, size_t dimensions,
                                        const size_t* shape);
// Null is fine here and in every other _destroy.
SOTTO_API void sotto_layout_destroy(sotto_layout* layout);

// ----- Where nodes of one process meet

// Where optimizers of one process meet.
typedef struct sotto_store sotto_store;

// For nodes that are threads (transport "inproc"). Serves one run at a time. May be destroyed while
// optimizers still use it.
SOTTO_API sotto_status sotto_store_create(sotto_store** out);
// Null is fine.
SOTTO_API void sotto_store_destroy(sotto_store* store);

// ----- A step rule of the caller's own

// Makes a node's own step: writes to `next` the model that a step from `x` with this gradient leads
// to, `count` floats each, which do not overlap. Algorithms move by d = x - next where their papers
// write the learning rate times the gradient; the gradient is this node's own, or with allreduce
// and similar algorithms the average of all nodes'. Returns null, or a text that says what is
// wrong, which stays as it is until the next call: the run then ends with it, at all nodes.
//
// Called once a round, one call at a time, while the caller's thread is inside
// sotto_optimizer_step (or _finish, with the setting "join"), by that thread or by one of the
// library's. It must call no function of this header for the same optimizer or rule, and let no
// exception out.
typedef const char* (*sotto_next_model)(void* context, uint64_t round, const float* x,
                                        const float* gradient, float* next, size_t count);

// As sotto_next_model, of the parameters from number `first` on, `count` floats each of `x`,
// `gradient` and `next`: of the whole model, or of one or more whole tensors that follow each
// other. In the latter case it is called once for each part of a round's gradient, and the parts
// have all parameters between them; sotto_optimizer_gradient_part calls it too.
typedef const char* (*sotto_next_tensors)(void* context, uint64_t round, size_t first,
                                          const float* x, const float* gradient, float* next,
                                          size_t count);

// A step rule that the program brings along, e.g. an optimizer of another library.
typedef struct sotto_step_rule sotto_step_rule;

// Rules that all nodes of a run have in common have one name; the settings "job.NAME" carry its
// parameters. The caller saves the rule's state between steps, besides sotto_optimizer_save, unless
// the rule says how that is done (sotto_step_rule_set_state). Each makes the steps of one optimizer
// at a time.
SOTTO_API sotto_status sotto_step_rule_create(const char* name, sotto_next_model next_model,
                                              void* context, sotto_step_rule** out);
// A rule whose step of a tensor depends on that tensor alone, so that gradients may be given in
// parts (sotto_optimizer_gradient_part); else as sotto_step_rule_create.
SOTTO_API sotto_status sotto_step_rule_create_by_tensor(const char* name,
                                                        sotto_next_tensors next_tensors,
                                                        void* context, sotto_step_rule** out);
// Sets `*bytes` and `*size` to what a rule remembers between two steps; the bytes stay as they are
// until the next call of a function of this rule. As with sotto_next_model, the result is null, or
// says what is wrong, and any thread of the library's may call it. After a fault each step, and the
// call that finishes the node, is that fault. At a sotto_elastic_optimizer 60 bytes a parameter and
// half a MiB may be saved, as newcomers take no more over.
typedef const char* (*sotto_save_state)(void* context, const void** bytes, size_t* size);
// Has a rule remember this from now on; `size` 0: nothing, as before its first step. The bytes may
// come from another node, or a file: check them. Returns null, or what is wrong with them.
typedef const char* (*sotto_load_state)(void* context, const void* bytes, size_t size);
// A number for the settings with which the rule makes the step of this number, from 0, e.g. a
// digest of its rates. It depends on the number alone.
typedef uint64_t (*sotto_step_settings)(void* context, uint64_t step);

// Has what the rule remembers saved and loaded by these, which get the rule's context: it is then
// part of the state of what the rule makes the steps of, which begins without a memory. Nodes that
// come and go (sotto_site_create_from, sotto_elastic_optimizer_create_from) take no other rules. To
// be called before the rule makes steps.
SOTTO_API sotto_status sotto_step_rule_set_state(sotto_step_rule* rule, sotto_save_state save,
                                                 sotto_load_state load);
// Has the settings of each step told by this, for a sotto_elastic_optimizer: nodes that differ in
// them do not step together (docs/epochs.md, "Nodes that differ"). To be called before the rule
// makes steps.
SOTTO_API sotto_status sotto_step_rule_set_settings(sotto_step_rule* rule,
                                                    sotto_step_settings settings);
// Waits for a call that is under way; none follows: steps of an optimizer that still has it end the
// run with SOTTO_STOPPED. Null is fine.
SOTTO_API void sotto_step_rule_destroy(sotto_step_rule* rule);

// ----- The optimizer

// One node's optimizer.
typedef struct sotto_optimizer sotto_optimizer;

// One node. `parameters` (`count` floats, the model) stay the caller's and must neither move nor be
// freed before the optimizer is destroyed; steps change them in place, and all nodes start from the
// same values. Null layout: one tensor of all. Null store: the nodes meet as the settings say; with
// a store the transport is by default "inproc". Does not connect yet; sotto_optimizer_create_from
// takes more.
SOTTO_API sotto_status sotto_optimizer_create(const char* const* settings, float* parameters,
                                              size_t count, const sotto_layout* layout,
                                              const sotto_store* store, sotto_optimizer** out);

// A request to end waits, which can be made before an optimizer exists.
typedef struct sotto_interrupt sotto_interrupt;

// For one optimizer, or for several that are to end together; for a simulation, or a plan.
SOTTO_API sotto_status sotto_interrupt_create(sotto_interrupt** out);
// Ends what waits in sotto_optimizer_create_from within a second, with SOTTO_STOPPED; for an
// optimizer that is made already, it does what sotto_optimizer_interrupt does. It stays raised. May
// be called from any thread, or by a signal's handler.
SOTTO_API sotto_status sotto_interrupt_raise(sotto_interrupt* interrupt);
// Null is fine. Optimizers that were made with it go on.
SOTTO_API void sotto_interrupt_destroy(sotto_interrupt* interrupt);

// What an optimizer is made of beside its settings and parameters.
typedef struct sotto_optimizer_setup sotto_optimizer_setup;

// A setup in which nothing is set, as sotto_optimizer_create has it with null pointers. It may make
// any number of optimizers. What is set may be destroyed before the setup, and the setup before its
// optimizers, but for the step rule. Null where something is set takes it back.
SOTTO_API sotto_status sotto_optimizer_setup_create(sotto_optimizer_setup** out);
// The tensors of the parameters, as they are in the layout now.
SOTTO_API sotto_status sotto_optimizer_setup_set_layout(sotto_optimizer_setup* setup,
                                                        const sotto_layout* layout);
// Where the nodes meet that are threads of this process.
SOTTO_API sotto_status sotto_optimizer_setup_set_store(sotto_optimizer_setup* setup,
                                                       const sotto_store* store);
// What ends waits, that of sotto_optimizer_create_from among them: where the settings name the host
// of a store, it waits until the name is known, `timeout` at most.
SOTTO_API sotto_status sotto_optimizer_setup_set_interrupt(sotto_optimizer_setup* setup,
                                                           const sotto_interrupt* interrupt);
// What makes the node's own steps. The setting "lr" is then the rate that the rule begins with, as
// other nodes are told; other settings of the local step are refused. Algorithms that are built on
// a rule of sotto's (onebit-adam, ...) take no rule of the caller's. A rule makes the steps of one
// optimizer at a time.
SOTTO_API sotto_status sotto_optimizer_setup_set_step_rule(sotto_optimizer_setup* setup,
                                                           const sotto_step_rule* rule);
// Null is fine.
SOTTO_API void sotto_optimizer_setup_destroy(sotto_optimizer_setup* setup);
// One node, as sotto_optimizer_create makes it, of what is set in `setup`.
SOTTO_API sotto_status sotto_optimizer_create_from(const sotto_optimizer_setup* setup,
                                                   const char* const* settings, float* parameters,
                                                   size_t count, sotto_optimizer** out);
// Leaves without waiting for other nodes; call sotto_optimizer_finish first when the run went well.
SOTTO_API void sotto_optimizer_destroy(sotto_optimizer* optimizer);

// Faults from here on end the run for this node, unless said otherwise: later steps, means, saves
// and ends return the fault again.

// Meets the other nodes, and compares settings and initial parameters. The first step does it when
// the caller did not.
SOTTO_API sotto_status sotto_optimizer_connect(sotto_optimizer* optimizer);
// Optional: the gradient of the next step is about to be computed. Algorithms that send the model
// itself (dpsgd) send it meanwhile.
SOTTO_API sotto_status sotto_optimizer_begin_step(sotto_optimizer* optimizer);
// One round: takes the gradient at the parameters, and moves them. `count` must be the
// parameters'. SOTTO_NON_FINITE for a gradient with a NaN or an infinity changes nothing, and
// another gradient may be given; where a finite one overflows the step rule it ends the run, with
// parameters that may have moved in part. SOTTO_BUDGET changes nothing either, and no step can
// follow; the state can be saved, and the run finished. The gradient is read until the call
// returns.
SOTTO_API sotto_status sotto_optimizer_step(sotto_optimizer* optimizer, const float* gradient,
                                            size_t count);
// *takes is 1 where the gradient of a step may be given in parts: with an algorithm in buckets
// (setting "buckets"), a step rule that goes tensor by tensor (all but lars, lamb, clipping, and
// rules of sotto_step_rule_create), gradients as they are (no privacy, no local steps), and another
// transport than nccl. Else 0.
SOTTO_API sotto_status sotto_optimizer_takes_parts(sotto_optimizer* optimizer, int* takes);
// The gradient of the `count` parameters from number `first` on, as soon as a backward pass has it:
// the exchanges of buckets that are complete begin. A part is any range, and one of whole tensors
// of the layout where the step rule needs these (muon, or one of sotto_step_rule_create_by_tensor).
// Each parameter is in one part; sotto_optimizer_step_by_parts follows. From then on these
// parameters may move, and must not be read for other gradients; all others stay. Results and
// faults are those of sotto_optimizer_step; after SOTTO_NON_FINITE for a NaN or an infinity the
// part may be given again. SOTTO_REFUSED for a part that does not fit or overlaps an earlier one,
// and where *takes is 0. It is read until the call returns.
SOTTO_API sotto_status sotto_optimizer_gradient_part(sotto_optimizer* optimizer, size_t first,
                                                     const float* part, size_t count);
// One round, after all parts of its gradient; SOTTO_REFUSED, which changes nothing, when some are
// missing.
SOTTO_API sotto_status sotto_optimizer_step_by_parts(sotto_optimizer* optimizer);
// The base learning rate from the next step on; part of what is saved. All nodes change it after
// the same step: where one does not, allreduce and all others that keep models equal end with
// SOTTO_UNEXPECTED and both rates, and with gossip the report's warnings say so.
SOTTO_API sotto_status sotto_optimizer_set_learning_rate(sotto_optimizer* optimizer, double rate);
// For a step rule of the caller's own whose settings have changed: says with which base learning
// rate it steps from the next step on, and in a text, the same where the change is, what else is
// not as it was when the nodes met; "" for nothing. Nodes compare it, as they compare rates.
SOTTO_API sotto_status sotto_optimizer_announce_settings(sotto_optimizer* optimizer, double rate,
                                                         const char* others);
// The mean of all nodes' models, in `mean` (`count` floats, as many as parameters, and as values
// that are carried along) on every node, e.g. to evaluate or save it; *consensus_distance, which
// may be null, is the mean squared distance of the models from it. All nodes call it after the same
// step.
SOTTO_API sotto_status sotto_optimizer_mean(sotto_optimizer* optimizer, float* mean, size_t count,
                                            double* consensus_distance);
// Values that belong to the model and that no step moves, e.g. a layer's running statistics
// (`count` floats): sotto_optimizer_mean and _finish_with_mean give their mean behind that of the
// parameters, in a `mean` of as many floats as both. They stay the caller's, may change between two
// calls, and must neither move nor be freed before the optimizer is destroyed; sotto_optimizer_save
// leaves them out. All nodes carry as many, which they compare as they meet. Once, before that:
// before sotto_optimizer_connect, or what calls it.
SOTTO_API sotto_status sotto_optimizer_carry_along(sotto_optimizer* optimizer, const float* values,
                                                   size_t count);
// Replaces `count` floats by those of node 0, e.g. where sotto_optimizer_carry_along starts from.
// All nodes call it, in one order with other such calls, with as many; connects first.
SOTTO_API sotto_status sotto_optimizer_take_from_node_0(sotto_optimizer* optimizer, float* values,
                                                        size_t count);
// Reports the caller's evaluation of its model to the run's outputs (settings metrics, log-json,
// tensorboard): node 0 reports it at once; on other nodes nothing happens. `accuracy` may be a NaN.
SOTTO_API sotto_status sotto_optimizer_evaluated(sotto_optimizer* optimizer, double loss,
                                                 double accuracy);
// For a program that ends for a reason of its own: once the nodes have met, all end with
// SOTTO_PEER_LOST and these words. Destroy the optimizer then.
SOTTO_API sotto_status sotto_optimizer_give_up(sotto_optimizer* optimizer, const char* reason);
// Wants all nodes to end together: their steps return SOTTO_ENDED, and change nothing, after a
// round that all agree on; the state can then be saved, and the run finished. May be called from
// any thread, or by a signal's handler, while another call is under way.
SOTTO_API sotto_status sotto_optimizer_ask_to_end(sotto_optimizer* optimizer);
// Ends the call that is waiting for other nodes, within a second, and the run with it: that call
// and all later ones return SOTTO_STOPPED, and the others are told as far as they can be reached.
// For a caller that will not wait for an agreed end; destroy the optimizer then. May be called from
// any thread, or by a signal's handler, while another call is under way.
SOTTO_API sotto_status sotto_optimizer_interrupt(sotto_optimizer* optimizer);
// Waits until this node's exchanges are complete, e.g. for exact counts.
SOTTO_API sotto_status sotto_optimizer_drain(sotto_optimizer* optimizer);
// Drains, and waits until all nodes have come this far. No step may follow. Where other nodes still
// take steps, the setting "join" says what happens; without it all nodes are told at once, with
// SOTTO_UNEXPECTED.
SOTTO_API sotto_status sotto_optimizer_finish(sotto_optimizer* optimizer);
// Finishes with the mean of all nodes' models at the end (sotto_optimizer_mean): where nodes have
// different amounts of data (setting join), sotto_optimizer_mean would come too early.
SOTTO_API sotto_status sotto_optimizer_finish_with_mean(sotto_optimizer* optimizer, float* mean,
                                                        size_t count, double* consensus_distance);

// Rounds done.
SOTTO_API sotto_status sotto_optimizer_round(sotto_optimizer* optimizer, uint64_t* round);
// The number of warnings so far; a larger one than before means new warnings in the report, which
// keeps the latest.
SOTTO_API sotto_status sotto_optimizer_warning_count(sotto_optimizer* optimizer, size_t* count);
// A JSON object: rank, nodes, round, dimension, the settings as used, the job's entries, warnings,
// traffic by peer, times, counters, and what is spent of the privacy budget (else null). Counts are
// exact after sotto_optimizer_drain. Free it with sotto_free.
SOTTO_API sotto_status sotto_optimizer_report(sotto_optimizer* optimizer, char** json);

// The whole state after draining, parameters included, in *size bytes; free them with sotto_free.
// Nothing is saved of a round whose gradient was not taken yet.
SOTTO_API sotto_status sotto_optimizer_save(sotto_optimizer* optimizer, void** bytes, size_t* size);
// Takes back what save wrote under the same settings, checked as a whole: a damaged state, or one
// of other settings, is refused before it changes anything; of what is wrong inside, the parameters
// may keep traces and the optimizer must be destroyed. Before the first step; connects first. All
// nodes load states of the same round.
SOTTO_API sotto_status sotto_optimizer_load(sotto_optimizer* optimizer, const void* bytes,
                                            size_t size);
// Saves into a file, which is replaced as a whole or not at all; `sotto checkpoint inspect`
// reads it.
SOTTO_API sotto_status sotto_optimizer_save_file(sotto_optimizer* optimizer, const char* path);
// Takes back what sotto_optimizer_save_file wrote, as sotto_optimizer_load does.
SOTTO_API sotto_status sotto_optimizer_load_file(sotto_optimizer* optimizer, const char* path);

// ----- A site: training with others that come and go
//
// For a program that trains a model of its own with sites that it trusts, each on its own data and
// in its own time (docs/own_models.md). Nothing ends because a peer ends. What this process has
// told others is in its folder first, unless settings say otherwise: a program that died goes on
// from there.
//
//   sotto_site_create(settings, parameters, count, NULL, &site);
//   sotto_site_connect(site);
//   for (sotto_site_over(site, &over); !over; sotto_site_over(site, &over)) {
//     (compute loss and gradient at `parameters`)
//     sotto_site_step(site, gradient, count, loss, &outcome);
//   }
//   sotto_site_finish(site);
//   sotto_site_destroy(site);
//
// Settings are those of sotto_list("site-settings"), with the names and meanings that they have in
// a site's file (docs/operations.md), spans of time in seconds, and `tensorboard`, a folder. `site`
// names such a file, as `sotto site init` makes it: the others then replace what it says. Without
// it name, key, peers and state are needed. An empty `state` keeps none: a program that dies then
// begins anew from a neighbour's model. The file of peers may change while the site runs: who is
// taken out of it is cut off.
//
// With the settings nodes and seeds ({"nodes", "2:16", "seeds", "10.0.0.1:9400", NULL}) it is a
// node of a run whose nodes come and go, each with a model of its own: `key` is then the run's, and
// there are no peers and no state.
//
// A site takes one thread at a time, but for sotto_site_stop, _report and _events. It has a thread
// of its own, which serves the peers while no call is under way.

// One site.
typedef struct sotto_site sotto_site;

// What a step came to, added up in its `outcome`.
enum {
  SOTTO_SITE_EXCHANGED = 1,  // a round is over: what peers sent is in the parameters
  SOTTO_SITE_DROPPED = 2     // the gradient does not count: the parameters are a neighbour's, or
                             // again those of before peers spoilt them; compute it anew at them
};

// One site. `parameters` (`count` floats, the initial model, equal at all sites) stay the caller's
// and must neither move nor be freed before the site is destroyed; connect, step and relay change
// them in place. Null layout: one tensor of all. Holds the folder `state`; connects to nobody yet.
SOTTO_API sotto_status sotto_site_create(const char* const* settings, float* parameters,
                                         size_t count, const sotto_layout* layout,
                                         sotto_site** out);
// One site, as sotto_site_create makes it, with the layout and the step rule of `setup`. A rule of
// the caller's (sotto_step_rule_set_state) makes the site's own steps on this thread, or on that of
// the call that waits; what it remembers is part of the site's state. Settings of the local step
// are then refused, and those of the file are not used. "job.NAME" is what else sites must agree
// on.
SOTTO_API sotto_status sotto_site_create_from(const sotto_optimizer_setup* setup,
                                              const char* const* settings, float* parameters,
                                              size_t count, sotto_site** out);
// Leaves at once; call sotto_site_finish first where the end is in good order.
SOTTO_API void sotto_site_destroy(sotto_site* site);
// Reads the state, opens the connections and begins: with the folder's model, a neighbour's, or the
// initial one. The first step does it when the caller did not. Waits for peers for `found-after`
// seconds at most, and for a neighbour that has promised its model longer. SOTTO_STOPPED: it was to
// stop before it had a model. Other faults are this site's own (its disk, its address, a newer
// process of it), never a peer's, and stay.
SOTTO_API sotto_status sotto_site_connect(sotto_site* site);
// A local step by the gradient at the parameters. Each `communication-interval`-th makes the state
// durable, exchanges with the peers, and waits for those that are behind for `patience` seconds at
// most. `loss` is that of the same batch, or a NaN. `outcome` may be null. SOTTO_NON_FINITE for
// a gradient or a loss that is an infinity, or a gradient with a NaN: it changes nothing, and
// another may be given.
SOTTO_API sotto_status sotto_site_step(sotto_site* site, const float* gradient, size_t count,
                                       double loss, int* outcome);
// A round without a step, for an observer: takes in what comes, and passes it on.
SOTTO_API sotto_status sotto_site_relay(sotto_site* site, int* outcome);
// Notes the caller's evaluation of the model, for the report. `accuracy` may be a NaN.
SOTTO_API sotto_status sotto_site_evaluated(sotto_site* site, double loss, double accuracy);
// Ends a round that is under way, and saves the state. No step may follow.
SOTTO_API sotto_status sotto_site_finish(sotto_site* site);
// sotto_site_finish for a node that ends before its run (the setting `nodes`): others are told, one
// of them takes over what it holds, and it waits until what it sent has arrived, for `leave-within`
// at most. A sotto_site_stop meanwhile ends that wait.
SOTTO_API sotto_status sotto_site_leave(sotto_site* site);
// Ends what waits within a tenth of a second, but not the wait of a sotto_site_leave that begins
// after it, which a second call ends: what has not arrived by then is lost. sotto_site_over is then
// 1. May be called from any thread, or by a signal's handler, while another call is under way.
SOTTO_API sotto_status sotto_site_stop(sotto_site* site);
// 1 when the setting `rounds` is reached or the site is to stop, else 0.
SOTTO_API sotto_status sotto_site_over(sotto_site* site, int* over);
// Rounds done, by the site's own count: about those of its neighbours. A schedule follows it.
SOTTO_API sotto_status sotto_site_round(sotto_site* site, uint64_t* round);
// The number of the next local step, which goes on after a restart: batches may be chosen by it.
SOTTO_API sotto_status sotto_site_next_step(sotto_site* site, uint64_t* step);
// A JSON object: how the site and each of its peers stand, as `sotto status --json` has it
// (docs/operations.md). Any thread may ask. Free it with sotto_free.
SOTTO_API sotto_status sotto_site_report(sotto_site* site, char** json);
// A JSON array of what has happened since the last call, the latest 1000 events at most, each with
// time, level, event, peer, round and text (docs/operations.md). Any thread may ask. Free it with
// sotto_free.
SOTTO_API sotto_status sotto_site_events(sotto_site* site, char** json);

// ----- One model whose nodes come and go
//
// For a program that is one node of an all-reduce, e.g. on machines that may be taken away at any
// time (docs/epochs.md). All nodes have the same model after each step. A step never fails because
// of a peer: those that live make it again of the same gradients, and newcomers take the model
// over.
//
//   sotto_elastic_optimizer_create(settings, parameters, count, NULL, &optimizer);
//   status = sotto_elastic_optimizer_connect(optimizer);
//   while (status == SOTTO_OK && !over) {
//     (compute loss and gradient at `parameters`)
//     status = sotto_elastic_optimizer_step(optimizer, gradient, count, loss, &round, &outcome);
//     sotto_elastic_optimizer_over(optimizer, &over);
//   }
//   sotto_elastic_optimizer_finish(optimizer);
//   sotto_elastic_optimizer_destroy(optimizer);
//
// Settings are those of sotto_list("elastic-settings"), with the names and meanings of the options
// of `sotto train`, spans of time in seconds: {"nodes", "2:16", "seeds", "10.0.0.1:9400", "lr",
// "0.1", NULL}. nodes and seeds are needed; seeds may also be a store by which nodes find each
// other, file:DIR, redis://HOST:PORT/PREFIX or torch://HOST:PORT/PREFIX. A process that torchrun
// has started needs no seeds, and has those of its agents.
//
// It takes one thread at a time, but for _stop, _cancel, _report and _events. A thread of its own
// answers the others while no call is under way.

// One node.
typedef struct sotto_elastic_optimizer sotto_elastic_optimizer;

// What a step came to, in its `outcome`.
enum {
  SOTTO_ELASTIC_LEFT_OUT = 1,  // the gradient, or a part of it, is in no mean: it came after the
                               // setting grace, or the others had put this node out meanwhile; with
                               // local steps the same of all of them since the run's step before
  SOTTO_ELASTIC_LOCAL_STEP = 2  // a step of this node's own (the setting communication-interval),
                                // after which the run's is to come
};

// One node. `parameters` (`count` floats, the initial model) stay the caller's and must neither
// move nor be freed before the node is destroyed; connect, step, wait and finish change them in
// place. The model of the node that begins the run counts. Null layout: one tensor of all. Connects
// to nobody yet.
SOTTO_API sotto_status sotto_elastic_optimizer_create(const char* const* settings,
                                                      float* parameters, size_t count,
                                                      const sotto_layout* layout,
                                                      sotto_elastic_optimizer** out);
// One node, as sotto_elastic_optimizer_create makes it, with the layout and the step rule of
// `setup`. A rule of the caller's (sotto_step_rule_set_state) makes the run's steps of the mean
// gradients, with local steps the node's own; it is called on this thread or the node's. A newcomer
// takes over what the rules of the others remember, so that equal rules make equal steps: they
// depend on the gradient, the number of the step and that memory alone. Settings of the local step
// are refused. "job.NAME" is what else nodes must agree on.
SOTTO_API sotto_status sotto_elastic_optimizer_create_from(const sotto_optimizer_setup* setup,
                                                           const char* const* settings,
                                                           float* parameters, size_t count,
                                                           sotto_elastic_optimizer** out);
// Leaves at once, as a process that dies does; call sotto_elastic_optimizer_finish first where the
// end is in good order.
SOTTO_API void sotto_elastic_optimizer_destroy(sotto_elastic_optimizer* optimizer);

// Faults from here on are of this node alone, never of a peer. After SOTTO_DEADLINE (the setting
// wait-limit is over) and SOTTO_STOPPED a further call goes on; other faults stay. SOTTO_ENDED: the
// run is over, and this node was not let in before.

// Finds the others, and waits until this node takes part: the parameters are then the run's. The
// first step does it when the caller did not.
SOTTO_API sotto_status sotto_elastic_optimizer_connect(sotto_elastic_optimizer* optimizer);
// A step by the gradient at the parameters; returns when the mean of all nodes' is in the
// parameters, or the gradient is left out. `loss` at the same parameters, or a NaN, is for reports.
// `round`, the steps that the parameters have had then, and `outcome` may be null. SOTTO_NON_FINITE
// for a gradient that is not finite changes nothing, and another may be given. After a wait that
// ended early _wait goes on with this gradient.
SOTTO_API sotto_status sotto_elastic_optimizer_step(sotto_elastic_optimizer* optimizer,
                                                    const float* gradient, size_t count,
                                                    double loss, uint64_t* round, int* outcome);
// *takes is 1 where the gradient of a step may be given in parts, and 0 with the setting
// communication-interval: local steps send no gradient.
SOTTO_API sotto_status sotto_elastic_optimizer_takes_parts(sotto_elastic_optimizer* optimizer,
                                                           int* takes);
// The gradient of the `count` parameters from number `first` on, as soon as a backward pass has it:
// chunks that are complete go to the nodes that own them, while the caller computes the rest. Each
// parameter is in one part; _step_by_parts follows, and until then all parameters stay as they are.
// The first part waits as _connect does where this node does not take part yet; if the parameters
// moved then nothing is sent, and the step is SOTTO_ELASTIC_LEFT_OUT. With the setting grace, each
// chunk has to come within it once more than half of all nodes have sent theirs. SOTTO_NON_FINITE
// for a part that is not finite: nothing of it is sent, and it may be given again. SOTTO_REFUSED
// for a part that is out of range or overlaps an earlier one, where *takes is 0, and while a step
// is pending.
SOTTO_API sotto_status sotto_elastic_optimizer_gradient_part(sotto_elastic_optimizer* optimizer,
                                                             size_t first, const float* part,
                                                             size_t count);
// A step by the gradient whose parts were given, else as _step, which is refused between a part and
// this call. SOTTO_REFUSED, which changes nothing, when some parts are missing.
SOTTO_API sotto_status sotto_elastic_optimizer_step_by_parts(sotto_elastic_optimizer* optimizer,
                                                             double loss, uint64_t* round,
                                                             int* outcome);
// Goes on with the wait of a step that ended early. SOTTO_REFUSED where none did.
SOTTO_API sotto_status sotto_elastic_optimizer_wait(sotto_elastic_optimizer* optimizer,
                                                    uint64_t* round, int* outcome);
// Ends the present wait, or else the next one, with SOTTO_STOPPED. May be called from any thread,
// or by a signal's handler, while another call is under way.
SOTTO_API sotto_status sotto_elastic_optimizer_cancel(sotto_elastic_optimizer* optimizer);
// Notes the caller's evaluation of the model, for the report. `accuracy` may be a NaN.
SOTTO_API sotto_status sotto_elastic_optimizer_evaluated(sotto_elastic_optimizer* optimizer,
                                                         double loss, double accuracy);
// Leaves in good order, within the setting leave-within: the others go on without this node, and
// have what it alone may know. A step that was pending may still be made. _cancel ends that wait,
// and so does a _stop meanwhile. No step may follow.
SOTTO_API sotto_status sotto_elastic_optimizer_finish(sotto_elastic_optimizer* optimizer);
// Ends what waits, and all later waits but that of a _finish that begins after it, which a second
// call ends; sotto_elastic_optimizer_over is then 1. May be called from any thread, or by a
// signal's handler, while another call is under way.
SOTTO_API sotto_status sotto_elastic_optimizer_stop(sotto_elastic_optimizer* optimizer);
// 1 when the setting `rounds` is reached or the node is to stop, else 0.
SOTTO_API sotto_status sotto_elastic_optimizer_over(sotto_elastic_optimizer* optimizer, int* over);
// Steps of the run that the parameters have had: a schedule, and batches, follow it at all nodes.
SOTTO_API sotto_status sotto_elastic_optimizer_round(sotto_elastic_optimizer* optimizer,
                                                     uint64_t* round);
// The number of the next gradient in the run: `round` times the setting communication-interval, and
// this node's own steps since. Batches may be chosen by it.
SOTTO_API sotto_status sotto_elastic_optimizer_next_step(sotto_elastic_optimizer* optimizer,
                                                         uint64_t* step);
// A JSON object: how the node and the others stand, as `sotto status --json` has it
// (docs/operations.md). Any thread may ask. Free it with sotto_free.
SOTTO_API sotto_status sotto_elastic_optimizer_report(sotto_elastic_optimizer* optimizer,
                                                      char** json);
// A JSON array of what has happened since the last call, as sotto_site_events gives it. Any thread
// may ask. Free it with sotto_free.
SOTTO_API sotto_status sotto_elastic_optimizer_events(sotto_elastic_optimizer* optimizer,
                                                      char** json);

// ----- Compressors alone

// A compressor, with its state between rounds.
typedef struct sotto_compressor sotto_compressor;

// `spec` as for the setting "compressor", e.g. "quant:8" or "topk:0.01". Null layout: nothing is
// known of the vectors' tensors.
SOTTO_API sotto_status sotto_compressor_create(const char* spec, const sotto_layout* layout,
                                               sotto_compressor** out);
// Null is fine.
SOTTO_API void sotto_compressor_destroy(sotto_compressor* compressor);
// The length of the longest encoding of `count` floats.
SOTTO_API sotto_status sotto_compressor_max_bytes(sotto_compressor* compressor, size_t count,
                                                  size_t* bytes);
// Encodes `count` finite floats; *size is the number of bytes used of `capacity`, which must be
// max_bytes. The bytes depend on the input, `seed` and `round` alone: change the round for
// independent rounding.
SOTTO_API sotto_status sotto_compressor_encode(sotto_compressor* compressor, const float* x,
                                               size_t count, uint64_t seed, uint64_t round,
                                               void* out, size_t capacity, size_t* size);
// y <- y + scale * C for a whole encoding of `count` floats. Bytes may come from any source: what
// is malformed is refused and leaves y as it was.
SOTTO_API sotto_status sotto_compressor_decode_add(sotto_compressor* compressor, const void* bytes,
                                                   size_t size, float scale, float* y,
                                                   size_t count);
// A JSON object for vectors of `count` floats: the whole specification, max_bytes and the contract.
SOTTO_API sotto_status sotto_compressor_describe(sotto_compressor* compressor, size_t count,
                                                 char** json);

// ----- Topologies alone

// A graph with its weights.
typedef struct sotto_topology sotto_topology;

// From the settings topology, nodes, weighting, lazy and seed; others are refused. Without nodes:
// as many as the specification itself says.
SOTTO_API sotto_status sotto_topology_create(const char* const* settings, sotto_topology** out);
// Null is fine.
SOTTO_API void sotto_topology_destroy(sotto_topology* topology);
// The number of nodes, and of rounds after which the graph repeats (1: it does not change).
SOTTO_API sotto_status sotto_topology_size(const sotto_topology* topology, size_t* nodes,
                                           uint64_t* period);
// W of one round, row-major, nodes * nodes floats: node i takes what node j says with weight
// w[i * nodes + j]. `count` must be nodes * nodes.
SOTTO_API sotto_status sotto_topology_weights(const sotto_topology* topology, uint64_t round,
                                              float* w, size_t count);

// ----- Studies: what runs would do on a network that need not be there
//
// Settings are names and values in turn, as everywhere here; they are those of the options of
// `sotto simulate` and `sotto plan`, and where a scenario comes from:
//
// - scenario: its file (docs/simulator.md); or scenario-text: what would stand in the file
//
// - seed: of everything random, in place of the scenario's
//
// - threads: that take gradients, by default one a core; results do not depend on it
//
// Both compute until they are done, which may take minutes, and print nothing. `interrupt`, which
// may be null, ends them with SOTTO_STOPPED, after the round that they simulate. They use no
// network, and any number may run at one time.

// Simulates the runs of a scenario in virtual time. *json is what `sotto simulate --json` writes; a
// run that failed is among its "failed". Further settings are `equal`: "bytes" or "time" also sets
// the runs beside each other where they had spent as much; `seeds`: every run is played with so
// many; and `upgrades`: "true" also says what each link, connection or node would be worth that was
// better. Free the text with sotto_free.
SOTTO_API sotto_status sotto_simulate(const char* const* settings, sotto_interrupt* interrupt,
                                      char** json);
// Finds which algorithm, how many bits and which graph reach the target first on a scenario's
// network. *json is what `sotto plan --json` writes. Further settings are rank-by, minimize, codec,
// budget, seeds and strategies, and algorithm, compressor and topology, which may be given again
// and again and then restrict what is considered. Free the text with sotto_free.
SOTTO_API sotto_status sotto_plan(const char* const* settings, sotto_interrupt* interrupt,
                                  char** json);

#ifdef __cplusplus
}  // extern "C"
#endif
