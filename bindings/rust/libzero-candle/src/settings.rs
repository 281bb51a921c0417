//! What a sharded optimizer is made from.

use std::fmt;

use candle_core::{bail, Result, Var};
use candle_nn::{ParamsAdamW, VarMap};
use libzero::{Config, Group, Key, Unfilled, Value};

use crate::error::OrCandle;

/// Which vars a parameter set has, by name and var.
type Belongs = Box<dyn Fn(&str, &Var) -> bool + Send>;

/// What a [`ShardedOptimizer`](crate::ShardedOptimizer) is made from: an algorithm, keys of libzero, and the ranks.
///
/// Unless [`set`](Settings::set) says otherwise, the stage is 3, and a var that no rank has a gradient for stays as it is.
///
/// ```
/// use libzero_candle::libzero::Key;
/// use libzero_candle::Settings;
///
/// let settings = Settings::new("lion", 1e-4)?.set(Key::WeightDecay, 0.1)?.set(Key::ClipNorm, 1.0)?.set(Key::Stage, 2)?;
/// # Ok::<(), candle_core::Error>(())
/// ```
pub struct Settings {
    pub(crate) keys: Config,
    pub(crate) group: Option<Group>,
    pub(crate) names: Option<VarMap>,
    pub(crate) sets: Vec<(Config, Belongs)>,
    pub(crate) f64_as_f32: bool,
}

impl Settings {
    /// An algorithm of libzero by name, and its learning rate: "sgd", "adam", "adamw", "adagrad", "lion", "lamb" or "muon".
    ///
    /// Muon is for matrices; other vars need another algorithm, by [`param_set`](Settings::param_set).
    pub fn new(algorithm: &str, learning_rate: f64) -> Result<Self> {
        let settings = Settings { keys: Config::new().or_candle()?, group: None, names: None, sets: Vec::new(), f64_as_f32: false };
        settings.set(Key::Algorithm, algorithm)?.set(Key::Lr, learning_rate)?.set(Key::Stage, 3)?.set(Key::Unfilled, Unfilled::Untouched)
    }

    /// AdamW with the parameters of candle's.
    pub fn adamw(params: ParamsAdamW) -> Result<Self> {
        Settings::new("adamw", params.lr)?
            .set(Key::Beta1, params.beta1)?
            .set(Key::Beta2, params.beta2)?
            .set(Key::Epsilon, params.eps)?
            .set(Key::WeightDecay, params.weight_decay)
    }

    /// Sets any key of libzero's optimizers, the same on all ranks. Gradients have the dtype of their var, so [`Key::GradDtype`] is
    /// refused.
    pub fn set<V: Value>(mut self, key: Key, value: V) -> Result<Self> {
        if key == Key::GradDtype {
            bail!("ZERO_KEY_GRAD_DTYPE is set, but candle gives each gradient in the dtype of its var; leave the key out")
        }
        self.keys.set(key, value).or_candle()?;
        Ok(self)
    }

    /// The ranks; without it those of the launcher ([`Group::env`]), and alone a world of one.
    pub fn group(mut self, group: Group) -> Self {
        self.group = Some(group);
        self
    }

    /// Names vars as `varmap` does, and orders them by name. Every var must be in it.
    ///
    /// Saves and error texts then show these names. Without it vars are ordered as they were created, and named `var.0`, `var.1` and so on.
    pub fn names(mut self, varmap: &VarMap) -> Self {
        self.names = Some(varmap.clone());
        self
    }

    /// Makes a parameter set with an algorithm and hyper-parameters of its own, for the vars that `belongs` picks by name and var. A var
    /// that several sets pick goes to the first of them. Sets are numbered from 1; number 0 has all other vars.
    ///
    /// ```
    /// use candle_nn::ParamsAdamW;
    /// use libzero_candle::libzero::{Config, Key};
    /// use libzero_candle::Settings;
    ///
    /// let mut muon = Config::new().unwrap();
    /// muon.set(Key::Algorithm, "muon").unwrap().set(Key::Lr, 0.02).unwrap();
    /// let settings = Settings::adamw(ParamsAdamW::default())?.param_set(muon, |_, var| var.rank() == 2);
    /// # Ok::<(), candle_core::Error>(())
    /// ```
    pub fn param_set(mut self, keys: Config, belongs: impl Fn(&str, &Var) -> bool + Send + 'static) -> Self {
        self.sets.push((keys, Box::new(belongs)));
        self
    }

    /// Takes f64 vars, which libzero keeps as f32: their values and gradients are rounded, and updates are made in f32. Without it f64 vars
    /// are an error.
    pub fn f64_as_f32(mut self) -> Self {
        self.f64_as_f32 = true;
        self
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { keys, group, names, sets, f64_as_f32 } = self;
        f.debug_struct("Settings")
            .field("keys", keys)
            .field("group", group)
            .field("names", &names.is_some())
            .field("sets", &sets.len())
            .field("f64_as_f32", f64_as_f32)
            .finish()
    }
}
