#include "train_options.h"

#include <limits>

#include <sotto/optim/algorithm.h>

#include "option_group.h"

namespace sotto::cli {
namespace {

void add_task_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "What is trained");
  group.option("--task", o.task, "SPEC", "digits, or data of your own; see `sotto list`");
  group.option("--model", o.model, "SPEC",
               "softmax, mlp:H1,H2,…, cnn, transformer; by default what fits the task");
  group.count("--batch", o.batch, "N", "Examples a round and node; by default 32");
  group.option("--partition", o.partition, "SPEC", "iid, dirichlet:ALPHA or label");
  group.option("--gradient-time", o.gradient_time, "SPEC",
               "How long a gradient takes at least, as on a slower machine: \"20 ms\", "
               "\"lognormal:20 ms,0.3\", \"uniform:15 ms,25 ms\" or \"exponential:20 ms\"");
  group.option("--init", o.init, "FILE.csv", "Start from the first row of this file of parameters");
}

void add_network_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Who takes part");
  group.count("--nodes", o.nodes, "N",
              "Number of nodes; 8, or what the data or the graph says by itself",
              std::numeric_limits<int>::max());
  group.option("--topology", o.topology, "SPEC", "Who talks to whom; see `sotto list`");
  group.option("--weighting", o.weighting, "NAME",
               "metropolis, uniform or shares; by default what fits the graph");
  group.flag("--lazy", o.lazy, "Mix with (I + W) / 2");
  group.option("--transport", o.transport, "NAME",
               "inproc (threads; the default), gloo or zmq (processes)");
  group.option("--timeout", o.timeout_s, "SECONDS",
               "Seconds of silence after which a peer counts as failed");
  group.option("--rendezvous", o.rendezvous, "URL",
               "Where the nodes of a launched job meet: tcp://HOST:PORT, file:DIR, "
               "redis://HOST:PORT/PREFIX; by default from MASTER_ADDR and MASTER_PORT");
  group.option("--bind", o.bind, "ADDRESS", "Address to listen on");
  group.flag("--insecure", o.insecure, "Allow listening beyond this host without encryption");
  group.option("--key", o.key, "FILE",
               "This node's key (`sotto keygen`): everything between the nodes is encrypted, and "
               "only listed peers are heard; zmq only");
  group.option("--peers", o.peers, "FILE.csv",
               "The nodes with their public keys, this one among them, and whom it trusts; may "
               "change during the run");
  group.flag("--local", o.local,
             "Run all nodes here, whatever a launcher's variables (RANK, …) say");
}

void add_algorithm_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Algorithm");
  group.option("--algorithm", o.algorithm, "NAME", "See `sotto list`");
  group.option("--compressor", o.compressor, "SPEC",
               "See `sotto list`; by default the algorithm's own");
  group.option("--consensus-stepsize", o.consensus_stepsize, "ETA",
               "How far to move to the neighbours (deepsqueeze, choco, beer); by default derived "
               "from the compressor");
  group.count("--extrapolation-clock", o.extrapolation_clock, "T",
              "ecd: where its clock t stops; a small T suits a fine grid");
  group.option(
      "--freeze-step", o.freeze_step, "R|auto",
      "Rounds of plain Adam before the variance is frozen; apmsqueeze, onebit-lamb and "
      "onebit-adam-gossip need it, zeroone-adam takes it; auto: until it is stable (onebit-adam), "
      "or never (zeroone-adam)");
  group.count("--local-step-limit", o.local_step_limit, "R",
              "zeroone-adam: the most rounds between exchanges after the freeze; by default 16");
  group.option("--rule", o.rule, "SPEC",
               "robust: how neighbours that may lie are taken in; clipped:auto by default, see "
               "`sotto list`");
  group.option("--byzantine", o.byzantine, "RANKS",
               "A test tool, with robust: these nodes lie, e.g. 0-2,7; the others share the data "
               "and are averaged");
  group.option("--attack", o.attack, "SPEC",
               "What they do: alie[:Z], ipm[:EPSILON], dissensus[:EPSILON], near-ipm, sign-flip, "
               "noise[:SIGMA] or label-flip (docs/robust.md)");
  group.flag("--allow-contract-violation", o.allow_contract_violation,
             "Run a compressor or graph for which the algorithm's theory does not hold");
  group.flag("--delayed-gradient", o.delayed_gradient,
             "choco, deepsqueeze, pushsum: take each gradient at the model of the round before, so "
             "that they too talk to the neighbours during it");
  group.option("--overlap", o.overlap, "on|off", "on: talk to the neighbours during the gradient");
  group.count(
      "--buckets", o.buckets, "N",
      "Cut the model into N pieces: while one is on the wire the next is encoded; by default "
      "what fits its length",
      kMostBuckets);
  group.count("--codec-threads", o.codec_threads, "N",
              "Threads with which each node encodes and decodes long models; results are the same",
              std::numeric_limits<int>::max());
}

void add_step_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Local step");
  group.option(
      "--step-rule", o.step_rule, "NAME",
      "sgd, adam, adamw, lars or lamb; by default what the algorithm is built on, else sgd");
  group.option("--lr", o.lr, "GAMMA",
               "Learning rate; by default 0.1 for sgd, 1 for lars, 0.001 for adam and lamb");
  group.option("--momentum", o.momentum, "MU", "sgd, lars: momentum");
  group.flag("--nesterov", o.nesterov, "sgd: Nesterov's form of the momentum");
  group.option("--weight-decay", o.weight_decay, "LAMBDA", "Weight decay");
  group.option("--beta1", o.beta1, "BETA", "adam, lamb: decay of the mean; by default 0.9");
  group.option("--beta2", o.beta2, "BETA", "adam, lamb: decay of the variance; by default 0.999");
  group.option("--epsilon", o.epsilon, "EPSILON",
               "adam, lamb: added to the root of the variance; by default 1e-8");
  group.option("--bias-correction", o.bias_correction, "WHEN",
               "adam: divide the moments by 1 - beta^t: always; warmup, until the variance is "
               "frozen; or never");
  group.option("--trust-coefficient", o.trust_coefficient, "ETA",
               "lars: a tensor's step relative to its norm, before the learning rate; by default "
               "0.001");
  group.option("--clip-norm", o.clip_norm, "MAX",
               "Scale gradients down to this Euclidean norm, over all tensors; with "
               "--noise-multiplier or --privacy-epsilon those of single examples, or what "
               "--privacy-unit says");
  group.option("--schedule", o.schedule, "SPEC",
               "constant, step:EVERY[:FACTOR], cosine[:FLOOR] or invsqrt:EVERY, each with "
               ",warmup=ROUNDS if wanted");
}

void add_privacy_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Differential privacy (docs/privacy.md)");
  group.option(
      "--noise-multiplier", o.noise_multiplier, "SIGMA",
      "Add normal noise of SIGMA times --clip-norm to what each node computes on its data, "
      "before anything is sent");
  group.option("--privacy-epsilon", o.privacy_epsilon, "EPSILON",
               "Stop before more is told; without --noise-multiplier the noise is chosen so that "
               "the budget lasts for all rounds");
  group.option("--privacy-delta", o.privacy_delta, "DELTA",
               "The probability that goes with EPSILON; by default 1e-5");
  group.option("--privacy-unit", o.privacy_unit, "UNIT",
               "Whose presence is hidden: example, one training example (the default), or update, "
               "all data of a node");
  group.count("--privacy-seed", o.privacy_seed, "S",
              "Take noise and samples from this seed, which then hides nothing: for tests and "
              "simulations",
              std::numeric_limits<std::uint64_t>::max());
}

void add_local_step_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Local steps between exchanges");
  group.count("--communication-interval", o.communication_interval, "H",
              "Rounds from one exchange to the next; between them each node steps by itself");
  group.option("--outer-step-rule", o.outer_step_rule, "NAME",
               "What an exchange makes of the movement since the last one; by default what the "
               "algorithm is built on, else sgd");
  group.option(
      "--outer-lr", o.outer_lr, "GAMMA",
      "Its learning rate; by default 1 for sgd (the movement as it is) and lars, 0.001 for "
      "adam and lamb");
  group.option("--outer-momentum", o.outer_momentum, "MU",
               "Its momentum; DiLoCo is allreduce with 0.9, --outer-nesterov and --outer-lr 0.7");
  group.flag("--outer-nesterov", o.outer_nesterov, "Nesterov's form of that momentum");
}

void add_length_options(CLI::App& command, TrainOptions& o) {
  OptionGroup group(command, "Length and results");
  auto& epochs = group.option("--epochs", o.epochs, "E",
                              "Passes over the data; by default 5, and 100 rounds at least");
  group.count("--rounds", o.rounds, "R", "Rounds, instead of epochs").excludes(&epochs);
  group.count("--eval-every", o.eval_every, "R",
              "Rounds between evaluations; by default an epoch, or more so that there are 100 at "
              "most; 0: only at the end");
  group.option("--dump-parameters", o.dump_parameters, "FILE.csv",
               "Write the final models, a row of numbers for each node");
  group.option("--checkpoint", o.checkpoint, "DIR", "Save the state of all nodes in this folder");
  group.count("--checkpoint-every", o.checkpoint_every, "R",
              "Rounds between checkpoints; by default as --eval-every");
  group.flag("--resume", o.resume, "Go on from the newest checkpoint that all nodes have");
}

}  // namespace

void add_train_options(CLI::App& command, TrainOptions& options) {
  add_task_options(command, options);
  add_network_options(command, options);
  add_algorithm_options(command, options);
  add_step_options(command, options);
  add_local_step_options(command, options);
  add_privacy_options(command, options);
  add_length_options(command, options);
  add_common_options(command, options.common);
}

}  // namespace sotto::cli
